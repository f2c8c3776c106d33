# Draws throughput over peak memory from what `plumbline sweep --csv` prints: o = no other row beats it in both.
# SPDX-License-Identifier: MIT
# Usage: plumbline sweep SCENARIO ... --csv | awk -f examples/tradeoff.awk      (values without commas)
BEGIN { FS = ","; wide = 64; high = 14 }
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
$(column["fits"]) != "false" && $(column["peak_memory_bytes"]) != "" {
  x[++n] = $(column["peak_memory_bytes"]) / 2^30
  y[n] = $(column["throughput_samples_per_s"])
  if (x[n] > right) right = x[n]
  if (y[n] > top) top = y[n]
}
END {
  if (n == 0) exit 1
  for (i = 1; i <= n; i++) {
    mark = "o"
    for (j = 1; j <= n; j++)
      if (y[j] >= y[i] && x[j] <= x[i] && (y[j] > y[i] || x[j] < x[i])) mark = "."
    place = int(y[i] / top * (high - 1) + 0.5) " " int(x[i] / right * (wide - 1) + 0.5)
    if (picture[place] != "o") picture[place] = mark
  }
  for (row = high - 1; row >= 0; row--) {
    line = ""
    for (at = 0; at < wide; at++) line = line ((row " " at) in picture ? picture[row " " at] : " ")
    sub(/ +$/, "", line)
    label = row == high - 1 ? sprintf("%.4g", top) : row == 0 ? "0" : ""
    printf "%6s |%s\n", label, line
  }
  line = sprintf("%*s", wide, "")
  gsub(/ /, "-", line)
  printf "%6s +%s\n%6s  0%*s\n", "", line, "", wide - 1, sprintf("%.4g GiB", right)
}

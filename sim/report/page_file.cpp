// Puts the parts into the shell, texts from users last.
//
// SPDX-License-Identifier: MIT
#include "sim/report/page_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/base64.h"
#include "base/bug.h"
#include "sim/report/chrome_trace.h"
#include "sim/report/report_assets.h"

namespace plumbline {
namespace {

/// The size in bytes below which columns are not compressed. So even a browser without
/// DecompressionStream shows a small page.
constexpr std::size_t kPlain = 16'384;

/// The modules as one script. They import each other by name, and only at the start of a line.
/// Without those lines, and without `export`, they are one program.
std::string script(std::span<const std::string_view> modules) {
  std::string text;
  for (const std::string_view module : modules) {
    const std::string_view source = report_asset(module);
    bool importing = false;
    for (std::size_t at = 0; at < source.size();) {
      const std::size_t end = std::min(source.find('\n', at), source.size());
      std::string_view line = source.substr(at, end - at);
      at = end + 1;
      importing = importing || line.starts_with("import ");
      if (importing) {
        importing = !line.ends_with(';');
        continue;
      }
      if (line.starts_with("export ")) line.remove_prefix(7);
      text += line;
      text += '\n';
    }
  }
  return text;
}

/// Replaces the only `mark` in `text` by `value`.
void fill(std::string& text, std::string_view mark, std::string_view value) {
  const std::size_t at = text.find(mark);
  PLUMBLINE_CHECK(at != std::string::npos, mark);
  text.replace(at, mark.size(), value);
}

}  // namespace

std::string page_file(const PageParts& parts) {
  std::string page(report_asset("page.html"));
  fill(page, "/*STYLE*/",
       std::string(report_asset("palette.css")) + std::string(report_asset("page.css")));
  fill(page, "<!--BODY-->", report_asset(parts.body));
  fill(page, "/*SCRIPT*/", script(parts.modules));
  const bool plain = parts.data.size() < kPlain;
  // The scenario's texts are put in last, so that no mark is searched in them.
  fill(page, "<!--DATA-->",
       fmt::format("<script type=\"application/json\" id=\"facts\">{}</script>\n"
                   "<script type=\"text/plain\" id=\"columns\" data-encoding=\"{}\">{}</script>",
                   parts.facts, plain ? "plain" : "gzip",
                   base64(plain ? parts.data : gzip(parts.data, 9))));
  return page;
}

}  // namespace plumbline

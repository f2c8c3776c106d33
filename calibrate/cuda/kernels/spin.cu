// Kernels that prove where and when work runs. SPDX-License-Identifier: MIT

extern "C" {

/// Blocks run for at least `nanoseconds`; the first thread of block 0 writes begin and end by the
/// device's global clock into times[0] and times[1].
__global__ void plumbline_spin(unsigned long long nanoseconds, unsigned long long* times) {
  unsigned long long begin, end;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
  } while (end - begin < nanoseconds);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    times[0] = begin;
    times[1] = end;
  }
}

/// Each block stays for `cycles` and writes the number of the SM that it ran on.
__global__ void plumbline_where(unsigned* sm_of_block, long long cycles) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (threadIdx.x == 0) sm_of_block[blockIdx.x] = sm;
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

}  // extern "C"

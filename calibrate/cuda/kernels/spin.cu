// Kernels that prove where and when work runs.
//
// SPDX-License-Identifier: MIT

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

/// Ends when the host has written the ticket into words[0], or after `nanoseconds`, which it then
/// notes in words[1]. The words are in the host's memory. One thread.
__global__ void plumbline_wait_for_host(volatile unsigned* words, unsigned ticket,
                                        unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  while (words[0] != ticket) {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now - begin < nanoseconds) continue;
    words[1] = 1;
    __threadfence_system();
    return;
  }
}

/// Notes the device's global clock. One thread, as the next.
__global__ void plumbline_note_time(unsigned long long* time) {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  *time = now;
}

/// Ends when `nanoseconds` have passed since the noted time; at once if they already have.
__global__ void plumbline_wait_since(const unsigned long long* since,
                                     unsigned long long nanoseconds) {
  const unsigned long long end = *since + nanoseconds;
  unsigned long long now;
  while (true) {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now >= end) break;
    if (end - now > 2000) __nanosleep(500);
  }
}

/// Counts the cycles of its SM during at least `nanoseconds` of the device's global clock, from one
/// tick of that clock to another. Writes the cycles and the real nanoseconds. One thread.
__global__ void plumbline_count_cycles(unsigned long long nanoseconds,
                                       unsigned long long* counted) {
  unsigned long long before, begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  } while (begin == before);
  const long long first = clock64();
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
  counted[0] = static_cast<unsigned long long>(clock64() - first);
  counted[1] = now - begin;
}

/// Each block runs for `cycles` and writes the number of its SM.
__global__ void plumbline_where(unsigned* sm_of_block, long long cycles) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (threadIdx.x == 0) sm_of_block[blockIdx.x] = sm;
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

}  // extern "C"

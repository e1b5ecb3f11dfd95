// The content that the stress workload gives its blocks, to find damage.
//
// Owns: nothing. Called by: stress_workload. Thread-safety: pure functions.
//
// A payload follows from a key, the key from (seed, block id, size), so that a
// block found with another block's content is told from one left alone. Small
// blocks are written whole; of large ones only probes are, close enough that
// every page (beyond 4 MiB: every MiB) has one.
#ifndef HAKMEM_ALLOCATOR_TESTING_STRESS_PAYLOAD_H_
#define HAKMEM_ALLOCATOR_TESTING_STRESS_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hakmem::stress {

std::uint64_t PayloadKey(std::uint64_t seed, std::uint64_t id,
                         std::size_t size);

// The byte a payload has at `index`.
std::uint8_t PayloadByte(std::uint64_t key, std::size_t index);

void FillPayload(void* block, std::size_t size, std::uint64_t key);

// The index of the first wrong byte among the first `valid` bytes of a payload
// that was written for `size` bytes; `valid` is less than `size` after a
// realloc to fewer bytes.
std::optional<std::size_t> FindDamage(const void* block, std::size_t size,
                                      std::size_t valid, std::uint64_t key);

// The index of the first byte that is not zero, where a payload would be.
std::optional<std::size_t> FindNonZero(const void* block, std::size_t size);

}  // namespace hakmem::stress

#endif  // HAKMEM_ALLOCATOR_TESTING_STRESS_PAYLOAD_H_

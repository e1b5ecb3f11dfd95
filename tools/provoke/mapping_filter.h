// A filter that refuses mappings for no reason that any limit gives.
#ifndef HAKMEM_TOOLS_PROVOKE_MAPPING_FILTER_H_
#define HAKMEM_TOOLS_PROVOKE_MAPPING_FILTER_H_

namespace hakmem::provoke {

// From now on every mapping of 512 MiB or more that this process asks for is
// refused with ENOMEM, for good. False: the kernel takes no such filter.
bool RefuseLongMappings();

}  // namespace hakmem::provoke

#endif  // HAKMEM_TOOLS_PROVOKE_MAPPING_FILTER_H_

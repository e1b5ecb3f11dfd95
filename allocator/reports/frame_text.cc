#include "allocator/reports/frame_text.h"

#include "allocator/base/raw_print.h"
#include "allocator/process/process.h"
#include "allocator/reports/report_text.h"
#include "allocator/stacks/modules.h"
#include "allocator/stacks/symbols.h"

namespace hakmem {

void WriteFrames(int fd, std::span<const std::uintptr_t> frames) {
  ModuleOf module = {};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    RawPrinter line;
    PrintFrame(static_cast<unsigned>(i), frames[i], /*back=*/1, module, line);
    WriteFd(fd, line.Text("\n").text());
  }
}

void AddFramesJson(std::span<const std::uintptr_t> frames, JsonText& out) {
  ModuleOf module = {};
  out.Raw("[");
  for (std::size_t i = 0; i < frames.size(); ++i) {
    out.Raw(i == 0 ? "{\"address\":" : ",{\"address\":").Hex(frames[i]);
    // A call may be its function's last instruction.
    const std::uintptr_t place = frames[i] - 1;
    if (FindModuleAfter(place, module)) {
      out.Key("module").String(module.path);
      out.Key("offset").Hex(frames[i] - module.base);
      Symbol symbol = {};
      if (FindSymbol(module, place, symbol)) {
        out.Key("function").String(symbol.name);
      }
    }
    out.Raw("}");
  }
  out.Raw("]");
}

}  // namespace hakmem

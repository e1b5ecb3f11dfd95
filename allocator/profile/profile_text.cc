#include "allocator/profile/profile_text.h"

#include <cstddef>

#include "allocator/base/json_text.h"
#include "allocator/stacks/modules.h"

namespace hakmem {
namespace {

void Figures(const char* name, const ProfileFigures& figures, JsonText& line) {
  line.Key(name).Raw("{\"samples\":").Number(figures.samples);
  line.Key("blocks").Number(figures.blocks());
  line.Key("bytes").Number(figures.bytes).Raw("}");
}

void Kinds(const ProfileKinds& kinds, JsonText& line) {
  Figures("live", kinds.live, line);
  Figures("peak", kinds.peak, line);
  Figures("allocated", kinds.allocated, line);
}

class Writer {
 public:
  Writer(const LineSink& sink, ProfileRoom& room) : sink_(sink), room_(room) {}

  bool Start(const ProfileSource& source, std::uint64_t mean_bytes) {
    JsonText line = Begin();
    line.Raw(R"({"schema":"hakmem-heap-profile","version":1,"kind":"start")");
    line.Key("pid").SignedNumber(source.process_id);
    line.Key("program").String(source.program);
    line.Key("hakmem").String(source.version);
    line.Key("variant").String(source.variant);
    line.Key("mean_bytes").Number(mean_bytes);
    line.Key("time_ns").Number(source.time_ns);
    return End(line);
  }

  bool Site(const ProfileSite& site) {
    for (unsigned i = 0; i < site.stack.count; ++i) {
      if (!Module(site.stack.addresses[i])) return false;
    }
    JsonText line = Begin();
    line.Raw(R"({"kind":"site")");
    Kinds(site, line);
    line.Key("variances").Raw("{\"live\":").Number(site.variances.live);
    line.Key("peak").Number(site.variances.peak);
    line.Key("allocated").Number(site.variances.allocated).Raw("}");
    line.Key("stack").Raw("[");
    for (unsigned i = 0; i < site.stack.count; ++i) {
      line.Raw(i == 0 ? "" : ",").Hex(site.stack.addresses[i]);
    }
    line.Raw("]");
    return End(line);
  }

  bool Finish(const ProfileTotals& totals, std::uint32_t sites) {
    JsonText line = Begin();
    line.Raw(R"({"kind":"end","sites":)").Number(sites);
    line.Key("lost_samples").Number(totals.lost_samples);
    Kinds(totals, line);
    return End(line);
  }

 private:
  // The address's segment of a module has a line before the first site that it
  // is in.
  bool Module(std::uintptr_t address) {
    for (unsigned i = 0; i < modules_; ++i) {
      const ProfileRoom::Range& known = room_.ranges[i];
      if (address >= known.begin && address < known.end) return true;
    }
    ModuleOf module;
    if (modules_ == ProfileRoom::kModules || !FindModule(address, module)) {
      return true;
    }
    room_.ranges[modules_++] = {module.segment_begin, module.segment_end};
    JsonText line = Begin();
    line.Raw(R"({"kind":"module","path":)").String(module.path);
    if (module.build_id[0] != '\0') {
      line.Key("build_id").String(module.build_id);
    }
    line.Key("base").Hex(module.base);
    line.Key("begin").Hex(module.segment_begin);
    line.Key("end").Hex(module.segment_end);
    line.Key("offset").Number(module.segment_offset);
    return End(line);
  }

  JsonText Begin() { return {room_.line, sizeof(room_.line)}; }
  bool End(JsonText& line) {
    return sink_.write(sink_.context, line.Raw("}\n").text());
  }

  const LineSink& sink_;
  ProfileRoom& room_;
  unsigned modules_ = 0;
};

}  // namespace

bool WriteProfile(HeapProfile& profile, const ProfileSource& source,
                  const LineSink& sink, ProfileRoom& room, bool waits) {
  Writer writer(sink, room);
  const ProfileTotals totals = profile.Totals(waits);
  if (!writer.Start(source, totals.mean_bytes)) return false;
  for (std::uint32_t i = 0; i < totals.sites; ++i) {
    if (!profile.CopySite(i, room.site, waits) || !writer.Site(room.site)) {
      return false;
    }
  }
  return writer.Finish(totals, totals.sites);
}

}  // namespace hakmem

#include "allocator/stacks/unwind_table.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace hakmem {
namespace {

// DWARF's numbers of x86-64's registers; the last is the return address.
constexpr unsigned kUnwindRegisters = 17;
constexpr unsigned kRegisterRbp = 6;
constexpr unsigned kRegisterRsp = 7;
constexpr unsigned kRegisterReturn = 16;

// Where a caller's register is.
struct RegisterRule {
  enum class Kind : std::uint8_t {
    kSame,
    kUndefined,
    kAtOffset,  // in memory, so far from the frame's address
    kUnknown,   // told by an expression, which is not evaluated
  };
  Kind kind = Kind::kSame;
  std::int32_t offset = 0;  // a farther one is unknown
};

struct FrameRules {
  RegisterRule registers[kUnwindRegisters];
  // The frame's address (CFA) is that register's value and an offset.
  unsigned base = kRegisterRsp;
  std::int64_t base_offset = 0;
  bool base_known = true;
};

constexpr unsigned kMaxInstructions = 4096;
// Compilers remember one state at a time. All are on the stack of a program's
// malloc.
constexpr unsigned kMaxRemembered = 2;

// Encodings of pointers, the only ones that compilers and linkers write.
constexpr std::uint8_t kUnsigned4 = 0x03;
constexpr std::uint8_t kSigned4 = 0x0b;
constexpr std::uint8_t kSigned8 = 0x0c;
constexpr std::uint8_t kRelativeToHere = 0x10;
constexpr std::uint8_t kRelativeToTable = 0x30;
constexpr std::uint8_t kFormat = 0x0f;
constexpr std::uint8_t kOmitted = 0xff;

// Reads numbers one after the other, by few system calls. Numbers that cannot
// be read are 0, and `ok` is false from then on.
class Cursor {
 public:
  Cursor(MemoryReader& memory, std::uintptr_t at) : memory_(memory), at_(at) {}

  std::uintptr_t at() const { return at_; }
  void Skip(std::uint64_t bytes) { at_ += bytes; }
  bool ok() const { return ok_; }

  template <typename T>
  T Fixed() {
    unsigned char bytes[sizeof(T)];
    for (unsigned char& byte : bytes) byte = Byte();
    T value;
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  }
  std::uint8_t Byte() {
    if (at_ - begin_ >= length_) Fill();
    if (!ok_) return 0;
    return window_[at_++ - begin_];
  }
  std::uint64_t Unsigned() { return Leb128().value; }
  std::int64_t Signed() {
    Number number = Leb128();
    if (number.bits < 64 && number.is_negative) {
      number.value |= ~std::uint64_t{0} << number.bits;
    }
    return static_cast<std::int64_t>(number.value);
  }
  // A pointer that is stored relative to its own place.
  std::uintptr_t Pointer(std::uint8_t encoding) {
    const std::uintptr_t here = at_;
    std::uintptr_t value = 0;
    switch (encoding & kFormat) {
      case kUnsigned4:
        value = Fixed<std::uint32_t>();
        break;
      case kSigned4:
        value = static_cast<std::uintptr_t>(
            static_cast<std::intptr_t>(Fixed<std::int32_t>()));
        break;
      case 0:
      case kSigned8:
        value = Fixed<std::uint64_t>();
        break;
      default:
        ok_ = false;
    }
    return (encoding & 0x70) == kRelativeToHere ? value + here : value;
  }

 private:
  struct Number {
    std::uint64_t value;
    unsigned bits;     // read
    bool is_negative;  // if it is signed
  };
  Number Leb128() {
    Number number = {};
    std::uint8_t byte = 0;
    do {
      byte = Byte();
      if (number.bits < 64) {
        number.value |= std::uint64_t{byte & 0x7fU} << number.bits;
      }
      number.bits += 7;
    } while ((byte & 0x80) != 0 && ok_);
    number.is_negative = (byte & 0x40) != 0;
    return number;
  }
  void Fill() {
    begin_ = at_;
    length_ = kSmallestPageBytes - at_ % kSmallestPageBytes;
    if (length_ > sizeof(window_)) length_ = sizeof(window_);
    if (!ok_ || !memory_.Read(at_, window_, length_)) {
      ok_ = false;
      length_ = 0;
    }
  }

  MemoryReader& memory_;
  std::uintptr_t at_;
  std::uintptr_t begin_ = 0;
  std::size_t length_ = 0;
  bool ok_ = true;
  unsigned char window_[64];
};

// The part that many functions have in common (CIE).
struct Common {
  std::uintptr_t instructions = 0;
  std::uintptr_t end = 0;
  std::uint64_t code_factor = 0;
  std::int64_t data_factor = 0;
  std::uint8_t pointer_encoding = 0;
  bool has_augmentation = false;
};

bool ReadCommon(MemoryReader& memory, std::uintptr_t at, Common& common) {
  Cursor in(memory, at);
  const auto length = in.Fixed<std::uint32_t>();
  common.end = in.at() + length;
  if (length == ~std::uint32_t{0} || in.Fixed<std::uint32_t>() != 0) {
    return false;
  }
  const std::uint8_t version = in.Byte();
  if (version != 1 && version != 3) return false;
  char augmentation[8] = {};
  for (unsigned i = 0;; ++i) {
    const std::uint8_t letter = in.Byte();
    if (letter == 0) break;
    if (i + 1 >= sizeof(augmentation)) return false;
    augmentation[i] = static_cast<char>(letter);
  }
  common.code_factor = in.Unsigned();
  common.data_factor = in.Signed();
  const std::uint64_t return_register =
      version == 1 ? in.Byte() : in.Unsigned();
  if (return_register != kRegisterReturn) return false;
  if (augmentation[0] == 'z') {
    common.has_augmentation = true;
    const std::uint64_t bytes = in.Unsigned();
    common.instructions = in.at() + bytes;
    for (const char* letter = augmentation + 1; *letter != '\0'; ++letter) {
      switch (*letter) {
        case 'R':
          common.pointer_encoding = in.Byte();
          break;
        case 'P':
          in.Pointer(in.Byte() & kFormat);
          break;
        case 'L':
          in.Byte();
          break;
        case 'S':
          break;
        default:
          return false;
      }
    }
  } else {
    common.instructions = in.at();
  }
  return in.ok();
}

// Carries out the instructions of [in, end) up to those for `pc`.
class RuleMachine {
 public:
  RuleMachine(const Common& common, FrameRules& rules)
      : common_(common), rules_(rules) {}

  // The rules that `restore` goes back to.
  void SetInitial() { initial_ = rules_; }

  bool Run(Cursor& in, std::uintptr_t end, std::uintptr_t location,
           std::uintptr_t pc) {
    for (unsigned i = 0; i < kMaxInstructions; ++i) {
      if (in.at() >= end) return in.ok();
      const std::uint8_t code = in.Byte();
      if (!in.ok()) return false;
      const unsigned low = code & 0x3fU;
      std::uint64_t advance = 0;
      switch (code & 0xc0) {
        case 0x40:
          advance = low;
          break;
        case 0x80:
          SetOffset(low, static_cast<std::int64_t>(in.Unsigned()) *
                             common_.data_factor);
          continue;
        case 0xc0:
          Restore(low);
          continue;
        default:
          if (code >= 0x02 && code <= 0x04) {
            advance = code == 0x02   ? in.Byte()
                      : code == 0x03 ? in.Fixed<std::uint16_t>()
                                     : in.Fixed<std::uint32_t>();
            break;
          }
          if (!Extended(in, code)) return false;
          continue;
      }
      location += advance * common_.code_factor;
      if (location > pc) return in.ok();
    }
    return false;
  }

 private:
  void Set(std::uint64_t number, RegisterRule rule) {
    if (number < kUnwindRegisters) rules_.registers[number] = rule;
  }
  void SetOffset(std::uint64_t number, std::int64_t offset) {
    const auto near = static_cast<std::int32_t>(offset);
    Set(number, near == offset
                    ? RegisterRule{RegisterRule::Kind::kAtOffset, near}
                    : RegisterRule{RegisterRule::Kind::kUnknown});
  }
  void Restore(std::uint64_t number) {
    if (number < kUnwindRegisters) Set(number, initial_.registers[number]);
  }
  void SetBase(std::uint64_t number) {
    rules_.base_known = number < kUnwindRegisters;
    if (rules_.base_known) rules_.base = static_cast<unsigned>(number);
  }

  // The instructions whose whole byte is their code.
  bool Extended(Cursor& in, std::uint8_t code) {
    using Kind = RegisterRule::Kind;
    switch (code) {
      case 0x00:  // nop
        return true;
      case 0x05: {  // offset_extended
        const std::uint64_t number = in.Unsigned();
        SetOffset(number, static_cast<std::int64_t>(in.Unsigned()) *
                              common_.data_factor);
        return true;
      }
      case 0x06:  // restore_extended
        Restore(in.Unsigned());
        return true;
      case 0x07:  // undefined
        Set(in.Unsigned(), {Kind::kUndefined, 0});
        return true;
      case 0x08:  // same_value
        Set(in.Unsigned(), {Kind::kSame, 0});
        return true;
      case 0x09: {  // register
        const std::uint64_t number = in.Unsigned();
        in.Unsigned();
        Set(number, {Kind::kUnknown, 0});
        return true;
      }
      case 0x0a:  // remember_state
        if (remembered_count_ == kMaxRemembered) return false;
        remembered_[remembered_count_++] = rules_;
        return true;
      case 0x0b:  // restore_state
        if (remembered_count_ == 0) return false;
        rules_ = remembered_[--remembered_count_];
        return true;
      case 0x10:    // expression
      case 0x16: {  // val_expression
        Set(in.Unsigned(), {Kind::kUnknown, 0});
        in.Skip(in.Unsigned());
        return true;
      }
      case 0x11: {  // offset_extended_sf
        const std::uint64_t number = in.Unsigned();
        SetOffset(number, in.Signed() * common_.data_factor);
        return true;
      }
      case 0x2e:  // GNU_args_size
        in.Unsigned();
        return true;
      default:
        return BaseInstruction(in, code);
    }
  }

  // Those that say what the frame's address is.
  bool BaseInstruction(Cursor& in, std::uint8_t code) {
    switch (code) {
      case 0x0c:  // def_cfa
        SetBase(in.Unsigned());
        rules_.base_offset = static_cast<std::int64_t>(in.Unsigned());
        return true;
      case 0x0d:  // def_cfa_register
        SetBase(in.Unsigned());
        return true;
      case 0x0e:  // def_cfa_offset
        rules_.base_offset = static_cast<std::int64_t>(in.Unsigned());
        return true;
      case 0x0f:  // def_cfa_expression
        rules_.base_known = false;
        in.Skip(in.Unsigned());
        return true;
      case 0x12:  // def_cfa_sf
        SetBase(in.Unsigned());
        rules_.base_offset = in.Signed() * common_.data_factor;
        return true;
      case 0x13:  // def_cfa_offset_sf
        rules_.base_offset = in.Signed() * common_.data_factor;
        return true;
      default:
        return false;
    }
  }

  const Common& common_;
  FrameRules& rules_;
  FrameRules initial_;
  FrameRules remembered_[kMaxRemembered];
  unsigned remembered_count_ = 0;
};

// The entry (FDE) of the last function that begins at or before `pc`, by the
// table's sorted pairs; 0: none.
std::uintptr_t FindEntry(MemoryReader& memory, std::uintptr_t table,
                         std::uintptr_t pc) {
  Cursor in(memory, table);
  const std::uint8_t version = in.Byte();
  const std::uint8_t frame_encoding = in.Byte();
  const std::uint8_t count_encoding = in.Byte();
  const std::uint8_t pair_encoding = in.Byte();
  if (version != 1 || count_encoding == kOmitted ||
      pair_encoding != (kRelativeToTable | kSigned4)) {
    return 0;
  }
  in.Pointer(frame_encoding);
  const std::uint64_t count = in.Pointer(count_encoding);
  if (!in.ok() || count == 0) return 0;
  struct Pair {
    std::int32_t begin;
    std::int32_t entry;
  };
  // The last steps of the search need one read.
  constexpr std::uint64_t kPairsAtOnce = 64;
  Pair near[kPairsAtOnce];
  const std::uintptr_t pairs = in.at();
  const auto read = [&](std::uint64_t index, std::uint64_t pair_count) {
    return memory.Read(pairs + index * sizeof(Pair), near,
                       pair_count * sizeof(Pair));
  };
  const auto address = [&](std::int32_t offset) {
    return table + static_cast<std::uintptr_t>(std::intptr_t{offset});
  };
  std::uint64_t low = 0;
  std::uint64_t high = count;
  while (high - low > kPairsAtOnce) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (!read(middle, 1)) return 0;
    (address(near[0].begin) <= pc ? low : high) = middle;
  }
  if (!read(low, high - low)) return 0;
  const Pair* const behind = std::partition_point(
      near, near + (high - low),
      [&](const Pair& pair) { return address(pair.begin) <= pc; });
  return behind == near ? 0 : address(behind[-1].entry);
}

// False: the table does not know.
bool FindFrameRules(MemoryReader& memory, std::uintptr_t table,
                    std::uintptr_t pc, FrameRules& rules) {
  const std::uintptr_t entry = FindEntry(memory, table, pc);
  if (entry == 0) return false;
  Cursor in(memory, entry);
  const auto length = in.Fixed<std::uint32_t>();
  const std::uintptr_t end = in.at() + length;
  if (!in.ok() || length == ~std::uint32_t{0}) return false;
  const std::uintptr_t here = in.at();
  Common common;
  if (!ReadCommon(memory, here - in.Fixed<std::uint32_t>(), common)) {
    return false;
  }
  const std::uintptr_t begin = in.Pointer(common.pointer_encoding);
  const std::uintptr_t bytes = in.Pointer(common.pointer_encoding & kFormat);
  if (!in.ok() || pc < begin || pc - begin >= bytes) return false;
  if (common.has_augmentation) in.Skip(in.Unsigned());
  RuleMachine machine(common, rules);
  Cursor shared(memory, common.instructions);
  if (!machine.Run(shared, common.end, begin, UINTPTR_MAX)) return false;
  machine.SetInitial();
  return machine.Run(in, end, begin, pc);
}

FrameStep StepOf(const FrameRules& rules) {
  using Kind = RegisterRule::Kind;
  FrameStep step = {.kind = FrameStep::Kind::kByFrame};
  const RegisterRule& place = rules.registers[kRegisterReturn];
  const RegisterRule& saved = rules.registers[kRegisterRbp];
  if (place.kind == Kind::kUndefined) return {.kind = FrameStep::Kind::kEnd};
  constexpr std::int64_t kPlace = -static_cast<std::int64_t>(sizeof(void*));
  if (!rules.base_known || place.kind != Kind::kAtOffset ||
      place.offset != kPlace || saved.kind == Kind::kUnknown ||
      (rules.base != kRegisterRsp && rules.base != kRegisterRbp)) {
    return step;
  }
  const FrameStep told = {
      .kind = FrameStep::Kind::kByTable,
      .base_is_frame_pointer = rules.base == kRegisterRbp,
      .saves_frame_pointer = saved.kind == Kind::kAtOffset,
      .base_offset = static_cast<std::int32_t>(rules.base_offset),
      .saved_offset = static_cast<std::int16_t>(saved.offset)};
  const bool fits =
      told.base_offset == rules.base_offset &&
      (!told.saves_frame_pointer || told.saved_offset == saved.offset);
  return fits ? told : step;
}

}  // namespace

FrameStep FindFrameStep(MemoryReader& memory, std::uintptr_t table,
                        std::uintptr_t pc) {
  FrameRules rules;
  const bool told = table != 0 && FindFrameRules(memory, table, pc, rules);
  return told ? StepOf(rules) : FrameStep{.kind = FrameStep::Kind::kByFrame};
}

}  // namespace hakmem

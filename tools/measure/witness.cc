// A library for LD_PRELOAD that tells which file a process takes malloc and
// free from.
//
// BENCH_WITNESS names a file, to which each process that starts with this
// library appends one line:
//
//   PID <tab> PROGRAM <tab> FILE OF malloc <tab> FILE OF free <newline>
//
// It stands after the allocator in LD_PRELOAD, so that it changes nothing of
// what is found. It does not use stdio: it runs before main, in whatever state
// the allocator is then. The line is one write, so that lines
// of many processes do not mix.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::size_t kLineBytes = 4096;
constexpr std::size_t kMostObjects = 256;

class Line {
 public:
  void Add(const char* text) {
    // Room stays for the newline.
    while (*text != '\0' && size_ + 1 < kLineBytes) text_[size_++] = *text++;
  }

  void AddNumber(unsigned long number) {
    char digits[24];
    std::size_t at = sizeof(digits);
    digits[--at] = '\0';
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    Add(digits + at);
  }

  void WriteTo(const char* path) {
    const int file =
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) return;
    text_[size_++] = '\n';
    while (write(file, text_, size_) < 0 && errno == EINTR) {
    }
    close(file);
  }

 private:
  char text_[kLineBytes];
  std::size_t size_ = 0;
};

struct Objects {
  const char* names[kMostObjects];
  std::size_t count;
};

int Collect(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto* const objects = static_cast<Objects*>(data);
  if (info->dlpi_name[0] == '/' && objects->count < kMostObjects) {
    objects->names[objects->count++] = info->dlpi_name;
  }
  return 0;
}

// The first library, in the loader's order, that has the symbol itself.
const char* FirstLibraryWith(const char* symbol) {
  Objects objects = {};
  dl_iterate_phdr(Collect, &objects);
  for (std::size_t i = 0; i < objects.count; ++i) {
    void* const library = dlopen(objects.names[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) continue;
    void* const address = dlsym(library, symbol);
    dlclose(library);
    Dl_info info;
    if (address != nullptr && dladdr(address, &info) != 0 &&
        std::strcmp(info.dli_fname, objects.names[i]) == 0) {
      return objects.names[i];
    }
  }
  return "?";
}

const char* FileOf(const char* symbol) {
  void* const address = dlsym(RTLD_DEFAULT, symbol);
  Dl_info info;
  void* entry = nullptr;
  if (address == nullptr ||
      dladdr1(address, &info, &entry, RTLD_DL_SYMENT) == 0) {
    return "?";
  }
  // A program that is not position-independent and takes the address of malloc
  // has an entry of its own for it, which leads on to a library's.
  if (entry != nullptr &&
      static_cast<const ElfW(Sym)*>(entry)->st_shndx == SHN_UNDEF) {
    return FirstLibraryWith(symbol);
  }
  return info.dli_fname;
}

[[gnu::constructor]] void Tell() {
  const char* const path = std::getenv("BENCH_WITNESS");
  if (path == nullptr) return;
  const int error = errno;
  char program[1024];
  const ssize_t length =
      readlink("/proc/self/exe", program, sizeof(program) - 1);
  program[length < 0 ? 0 : length] = '\0';
  Line line;
  line.AddNumber(static_cast<unsigned long>(getpid()));
  line.Add("\t");
  line.Add(program);
  line.Add("\t");
  line.Add(FileOf("malloc"));
  line.Add("\t");
  line.Add(FileOf("free"));
  line.WriteTo(path);
  errno = error;
}

}  // namespace

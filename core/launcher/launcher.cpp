// The commands `elimina` and `fzn-elimina`: they start Python with SIGINT and SIGTERM held back until the command
// handles them. A signal that comes while Python itself starts is thus answered by the command, too.
// They use nothing of the C++ library: its static parts would tie a wheel to the newest systems.
#include <unistd.h>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace {

constexpr char kBeside[] = "python3";

// Writes the path of this program; returns false if the system does not provide it.
bool own_path(char (&path)[PATH_MAX]) {
#if defined(__APPLE__)
  char found_path[PATH_MAX];
  uint32_t size = sizeof found_path;
  return _NSGetExecutablePath(found_path, &size) == 0 && realpath(found_path, path);
#else
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || length == static_cast<ssize_t>(sizeof path)) return false;
  path[length] = '\0';
  return true;
#endif
}

// Writes the path of the interpreter beside this program (installers put both into one directory); returns false if
// there is none.
bool interpreter_beside(char (&path)[PATH_MAX]) {
  if (!own_path(path)) return false;
  char* name = std::strrchr(path, '/');
  if (!name || std::size_t(name + 1 - path) + sizeof kBeside > sizeof path) return false;
  std::memcpy(name + 1, kBeside, sizeof kBeside);
  return access(path, X_OK) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGTERM);
  sigprocmask(SIG_BLOCK, &held, nullptr);
  char beside[PATH_MAX], on_path[] = ELIMINA_PYTHON;
  char* interpreter = interpreter_beside(beside) ? beside : on_path;
  char run[] = "from " ELIMINA_MODULE " import main; main()", safe[] = "-P", command[] = "-c";
  auto** arguments = static_cast<char**>(std::calloc(std::size_t(argc) + 5, sizeof(char*)));
  if (!arguments) return EXIT_FAILURE;
  char* own_arguments[] = {interpreter, safe, command, run};
  std::memcpy(arguments, own_arguments, sizeof own_arguments);
  for (int i = 1; i < argc; ++i) arguments[3 + i] = argv[i];
  execvp(interpreter, arguments);
  std::perror(interpreter);
  return EXIT_FAILURE;
}

// The commands `elimina` and `fzn-elimina`: they start Python with SIGINT and SIGTERM held back until the command
// handles them, so that a signal that comes while Python itself starts is answered by the command, too.
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace {

// The path of this program; empty if the system does not tell it.
std::string own_path() {
  char path[PATH_MAX];
#if defined(__APPLE__)
  uint32_t size = sizeof path;
  char resolved[PATH_MAX];
  return _NSGetExecutablePath(path, &size) == 0 && realpath(path, resolved) ? resolved : "";
#else
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length <= 0 || length == static_cast<ssize_t>(sizeof path) ? "" : std::string(path, static_cast<std::size_t>(length));
#endif
}

// The interpreter beside this program, where there is one: installers put both into one directory.
std::string interpreter_beside() {
  const std::string own = own_path();
  if (own.empty()) return "";
  const std::string found = own.substr(0, own.rfind('/') + 1) + "python3";
  return access(found.c_str(), X_OK) == 0 ? found : "";
}

}  // namespace

int main(int argc, char** argv) {
  sigset_t held;
  sigemptyset(&held);
  sigaddset(&held, SIGINT);
  sigaddset(&held, SIGTERM);
  sigprocmask(SIG_BLOCK, &held, nullptr);
  std::string interpreter = interpreter_beside();
  if (interpreter.empty()) interpreter = ELIMINA_PYTHON;
  std::string run = "from " ELIMINA_MODULE " import main; main()", safe = "-P", command = "-c";
  std::vector<char*> arguments = {interpreter.data(), safe.data(), command.data(), run.data()};
  arguments.insert(arguments.end(), argv + 1, argv + argc);
  arguments.push_back(nullptr);
  execvp(interpreter.c_str(), arguments.data());
  std::perror(interpreter.c_str());
  return EXIT_FAILURE;
}

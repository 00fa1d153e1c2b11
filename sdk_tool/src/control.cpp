#include "control.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "config.h"
#include "identity.h"
#include "json.h"
#include "lifecycle.h"
#include "rocpd/recorder.h"
#include "say.h"
#include "state.h"

namespace rocpd {
namespace {

char g_path[sizeof(sockaddr_un::sun_path)] = "";
std::atomic<bool> g_listening{false};

struct Listener {
    int descriptor;
    dev_t device;
    ino_t inode;
};

std::string socket_path() {
    return config().control_folder + "/" + std::to_string(pid_namespace()) + "-" + std::to_string(getpid()) + ".sock";
}

// Removes the sockets of processes that were killed, as they could not.
void sweep(const std::string& folder) {
    DIR* names = opendir(folder.c_str());
    if (names == nullptr) return;
    const unsigned long long ours = pid_namespace();
    while (const dirent* entry = readdir(names)) {
        unsigned long long space = 0;
        int pid = 0, length = 0;
        const bool is_socket = std::sscanf(entry->d_name, "%llu-%d.sock%n", &space, &pid, &length) == 2 &&
                               length > 0 && entry->d_name[length] == '\0';
        if (is_socket && ours != 0 && space == ours && pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
            unlink((folder + "/" + entry->d_name).c_str());
    }
    closedir(names);
}

// Returns the listening socket, or -1 with the reason in errno.
int listen_at(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    unlink(path.c_str());  // left by an earlier process with this pid
    // The mode of the file is set before any process can connect: listen() comes last.
    if (bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        chmod(path.c_str(), 0600) == 0 && listen(descriptor, 4) == 0)
        return descriptor;
    const int error = errno;
    close(descriptor);
    errno = error;
    return -1;
}

bool same_user(int connection) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return peer.uid == geteuid() || peer.uid == 0;
}

std::string answer(const std::string& command) {
    bool good = true;
    if (command == "start")
        good = rocpd_start() == 0;
    else if (command == "stop")
        good = rocpd_stop() == 0 && rocpd_flush() == 0;
    else if (command == "flush")
        good = rocpd_flush() == 0;
    else if (command != "status")
        return "{\"ok\":false,\"error\":\"unknown command\"}\n";
    rocpd_status_t status{};
    rocpd_status(&status);
    std::string json = std::string("{\"ok\":") + (good ? "true" : "false") +
                       ",\"recording\":" + (status.recording != 0 ? "true" : "false") +
                       ",\"failed\":" + (status.failed != 0 ? "true" : "false") +
                       ",\"written\":" + std::to_string(status.written) + ",\"lost\":" + std::to_string(status.lost) +
                       ",\"file\":";
    append_json(json, status.file, Stray::kExact);
    return json + "}\n";
}

void serve(int connection) {
    const timeval patience{2, 0};
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (!same_user(connection)) return;
    char text[32] = "";
    std::size_t size = 0;
    while (size < sizeof text - 1 && std::memchr(text, '\n', size) == nullptr) {
        const ssize_t got = recv(connection, text + size, sizeof text - 1 - size, 0);
        if (got <= 0) return;
        size += static_cast<std::size_t>(got);
    }
    std::string command(text, size);
    command.resize(std::min(command.find('\n'), command.size()));
    const std::string reply = answer(command);
    if (send(connection, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
}

// A program that closes all descriptors may reuse our number for a socket of its own, whose connections are not ours.
bool still_ours(const Listener& listener) {
    struct stat facts {};
    return fstat(listener.descriptor, &facts) == 0 && facts.st_dev == listener.device &&
           facts.st_ino == listener.inode;
}

void* control_thread(void* argument) {
    pthread_setname_np(pthread_self(), "rocpd-control");
    const Listener listener = *static_cast<Listener*>(argument);
    delete static_cast<Listener*>(argument);
    while (still_ours(listener)) {
        const int connection = accept4(listener.descriptor, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection < 0 && errno != EINTR && errno != ECONNABORTED) break;
        if (connection < 0) continue;
        serve(connection);
        close(connection);
    }
    return nullptr;
}

}  // namespace

std::string problem_with(const std::string& folder) {
    if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return std::strerror(errno);
    struct stat facts {};
    if (lstat(folder.c_str(), &facts) != 0) return std::strerror(errno);
    if (!S_ISDIR(facts.st_mode)) return "it is not a folder";
    if (facts.st_uid != geteuid()) return "it belongs to another user";
    if ((facts.st_mode & 0077) != 0) return "its mode is not 0700";
    return {};
}

void start_control() {
    const std::string folder = config().control_folder;
    const std::string path = socket_path();
    std::string why = problem_with(folder);
    if (why.empty()) sweep(folder);
    const int descriptor = why.empty() ? listen_at(path) : -1;
    struct stat facts {};
    if (descriptor < 0 || fstat(descriptor, &facts) != 0) {
        if (why.empty()) why = std::strerror(errno);
        if (descriptor >= 0) close(descriptor);
        say("no control socket in " + folder + ": " + why + "; recording goes on");
        return;
    }
    std::snprintf(g_path, sizeof g_path, "%s", path.c_str());
    g_listening.store(true, std::memory_order_release);
    auto* listener = new Listener{descriptor, facts.st_dev, facts.st_ino};
    if (!start_service_thread(control_thread, listener)) {
        delete listener;
        close(descriptor);
        remove_control();
    }
}

void remove_control() {
    if (g_listening.exchange(false)) unlink(g_path);
}

void forget_control() { g_listening.store(false); }

}  // namespace rocpd

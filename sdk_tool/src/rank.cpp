#include "rank.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "environment.h"

namespace rocpd {
namespace {

struct Launcher {
    const char *number, *count, *on_node, *count_on_node;
};

// torchrun comes first: under srun or mpirun it starts one or more workers for each of theirs.
constexpr Launcher kTorch = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr std::array<Launcher, 5> kLaunchers = {
    {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
     {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
     {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
     {"PALS_RANKID", "PALS_SIZE", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
     {"FLUX_TASK_RANK", "FLUX_JOB_SIZE", "FLUX_TASK_LOCAL_ID", "FLUX_TASKS_PER_NODE"}}};

constexpr std::array<std::string_view, 3> kPrograms = {"torchrun", "accelerate", "deepspeed"};
constexpr std::array<std::string_view, 4> kModules = {"torch.distributed.run", "torch.distributed.launch",
                                                      "accelerate.commands.launch", "deepspeed.launcher.launch"};

template <std::size_t size>
bool is_one_of(const std::array<std::string_view, size>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

int number_in(std::string_view environment, std::string_view name) {
    const std::string_view text = value_in(environment, name);
    int value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= 0 && value < 1 << 30 ? value : -1;
}

Rank said_by(const Launcher& launcher, std::string_view environment) {
    return {number_in(environment, launcher.number), number_in(environment, launcher.count),
            number_in(environment, launcher.on_node), number_in(environment, launcher.count_on_node)};
}

}  // namespace

Rank rank_in(std::string_view environment) {
    // RANK alone may mean anything.
    if (const Rank rank = said_by(kTorch, environment);
        rank.number >= 0 && rank.number < rank.count && rank.on_node >= 0)
        return rank;
    for (const Launcher& launcher : kLaunchers)
        if (const Rank rank = said_by(launcher, environment); rank.number >= 0) return rank;
    return {};
}

// python -u /usr/bin/torchrun …, python -m torch.distributed.run …, torchrun …
bool starts_workers(const std::string& words) {
    bool is_first = true, is_module = false, is_value = false;
    for (std::size_t at = 0; at < words.size();) {
        const std::size_t end = std::min(words.find('\0', at), words.size());
        const std::string_view word = std::string_view(words).substr(at, end - at);
        if (is_module) return is_one_of(kModules, word);
        const bool is_program = is_first || (!is_value && word.substr(0, 1) != "-");
        if (is_program && is_one_of(kPrograms, word.substr(word.rfind('/') + 1))) return true;
        if (is_program && !is_first) return false;
        is_module = word == "-m";
        is_value = word == "-W" || word == "-X";
        is_first = false;
        at = end + 1;
    }
    return false;
}

}  // namespace rocpd

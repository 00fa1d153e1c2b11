#include "rank.h"

#include <array>
#include <cstdlib>

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

int number_in(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr || *text == '\0') return -1;
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    return *end == '\0' && value >= 0 && value < 1 << 30 ? static_cast<int>(value) : -1;
}

Rank said_by(const Launcher& launcher) {
    return {number_in(launcher.number), number_in(launcher.count), number_in(launcher.on_node),
            number_in(launcher.count_on_node)};
}

}  // namespace

Rank rank_of_process() {
    // RANK alone may mean anything.
    if (const Rank rank = said_by(kTorch); rank.number >= 0 && rank.number < rank.count && rank.on_node >= 0) return rank;
    for (const Launcher& launcher : kLaunchers)
        if (const Rank rank = said_by(launcher); rank.number >= 0) return rank;
    return {};
}

}  // namespace rocpd

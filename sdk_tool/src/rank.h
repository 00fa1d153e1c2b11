// The rank of a job that this process is, as its launcher says in the environment.
#pragma once

#include <string>
#include <string_view>

namespace rocpd {

// -1: not known.
struct Rank {
    int number = -1;
    int count = -1;
    int on_node = -1;        // its number among those of its node
    int count_on_node = -1;
};

// `environment` is one as of environment().
Rank rank_in(std::string_view environment);

// Whether a command line, zero-terminated words, is that of torchrun or the like. Such a process sets the ranks of the
// workers that it starts and is none of them: what Slurm or MPI calls it is not a rank of the job.
bool starts_workers(const std::string& words);

}  // namespace rocpd

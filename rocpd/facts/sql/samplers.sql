-- Categories of one rank whose regions may be frames of sampled call stacks; without such categories no region is one.
SELECT id FROM rocpd_string WHERE string IN {{samplers}}

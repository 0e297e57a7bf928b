"""``inferspec kernels``: Metal kernels checked, costed and run on a device.

    inferspec kernels check my_pkg.kernels                               its own tests, every launch in check mode
    inferspec kernels check my_pkg.kernels --shapes "softmax(x=float32[3,80])"
    inferspec kernels check rows.metal --shapes "x=float32[4,97] out=float32[4] width=97 threadgroups=4 threadgroup=32"
    inferspec kernels cost mine.metal theirs.metal                       what each launch moves and computes, side by side
    inferspec kernels run-on-device                                      on a Mac: natively, beside the simulator

A target runs in a process of its own (`worker`), which writes what metalsim tells of each launch as lines of JSON; what
is made of them (`seen`), and how it is shown (`tables`, `page`), knows nothing of how they came about.
"""

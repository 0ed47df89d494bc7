"""One named tuple for each table row. ``section`` and ``row`` say where it was read.

Every field after those two is what the file holds; a field that this driver generation did not
write yet is None.
"""

# No "from __future__ import annotations" here: typing.NamedTuple would compile every annotation string at
# import, which doubles the cost of these classes (docs/adr/0001-named-tuples.md).

from typing import NamedTuple

from crashlab.facts import Dim3


def dim3(x: int | None, y: int | None, z: int | None) -> Dim3 | None:
    """Three optional row fields as one extent; None when any of them is absent."""
    return None if x is None or y is None or z is None else Dim3(x, y, z)


class DeviceRow(NamedTuple):
    """A GPU; ``dev_name`` and its like are indexes into ``.strtab``."""

    section: int
    row: int
    dev_name: int
    dev_type: int | None = None
    sm_type: int | None = None
    dev_id: int | None = None
    pci_bus_id: int | None = None
    pci_dev_id: int | None = None
    num_sms: int | None = None
    num_warps_per_sm: int | None = None
    num_lanes_per_warp: int | None = None
    num_regs_per_lane: int | None = None
    num_predicates: int | None = None
    sm_major: int | None = None
    sm_minor: int | None = None
    instruction_size: int | None = None
    status: int | None = None
    num_uniform_regs: int | None = None
    num_uniform_predicates: int | None = None
    num_convergence_barriers: int | None = None

    @property
    def arch(self) -> str | None:
        """``sm_90`` from the device table; the image may say more precisely ``sm_90a``."""
        if self.sm_major is None or self.sm_minor is None:
            return None
        return f"sm_{self.sm_major}{self.sm_minor}"


class ContextRow(NamedTuple):
    """A CUDA context and the bases of its shared and local windows (16 MiB each)."""

    section: int
    row: int
    context_id: int
    shared_window_base: int | None = None
    local_window_base: int | None = None
    global_window_base: int | None = None
    device_idx: int | None = None
    tid: int | None = None


class ModuleRow(NamedTuple):
    """A loaded module; its image is a section of its own."""

    section: int
    row: int
    handle: int


class GridRow(NamedTuple):
    """A kernel launch in flight."""

    section: int
    row: int
    grid_id: int
    context_id: int | None = None
    function: int | None = None
    function_entry: int | None = None
    module_handle: int | None = None
    parent_grid_id: int | None = None
    params_offset: int | None = None
    kernel_type: int | None = None
    origin: int | None = None
    status: int | None = None
    num_regs: int | None = None
    grid_dim_x: int | None = None
    grid_dim_y: int | None = None
    grid_dim_z: int | None = None
    block_dim_x: int | None = None
    block_dim_y: int | None = None
    block_dim_z: int | None = None
    launch_blocking: int | None = None
    host_tid: int | None = None
    cluster_dim_x: int | None = None
    cluster_dim_y: int | None = None
    cluster_dim_z: int | None = None
    preferred_cluster_dim_x: int | None = None
    preferred_cluster_dim_y: int | None = None
    preferred_cluster_dim_z: int | None = None

    @property
    def grid_dim(self) -> Dim3 | None:
        return dim3(self.grid_dim_x, self.grid_dim_y, self.grid_dim_z)

    @property
    def block_dim(self) -> Dim3 | None:
        return dim3(self.block_dim_x, self.block_dim_y, self.block_dim_z)

    @property
    def cluster_dim(self) -> Dim3 | None:
        return dim3(self.cluster_dim_x, self.cluster_dim_y, self.cluster_dim_z)


class ConstantBankRow(NamedTuple):
    """One constant bank of a grid: address, size in bytes, bank number."""

    section: int
    row: int
    address: int
    size: int | None = None
    bank_id: int | None = None


class SmRow(NamedTuple):
    """A streaming multiprocessor and, since r555, the fault of a warp that has exited."""

    section: int
    row: int
    sm_id: int
    exception: int | None = None
    errorpc_valid: int | None = None
    errorpc: int | None = None
    cluster_target_valid: int | None = None
    cluster_target_x: int | None = None
    cluster_target_y: int | None = None
    cluster_target_z: int | None = None
    exception_string: int | None = None


class CtaRow(NamedTuple):
    """A thread block resident on an SM."""

    section: int
    row: int
    grid_id: int
    block_x: int | None = None
    block_y: int | None = None
    block_z: int | None = None
    cluster_x: int | None = None
    cluster_y: int | None = None
    cluster_z: int | None = None
    cluster_dim_x: int | None = None
    cluster_dim_y: int | None = None
    cluster_dim_z: int | None = None

    @property
    def block(self) -> Dim3 | None:
        return dim3(self.block_x, self.block_y, self.block_z)

    @property
    def cluster(self) -> Dim3 | None:
        return dim3(self.cluster_x, self.cluster_y, self.cluster_z)

    @property
    def cluster_dim(self) -> Dim3 | None:
        return dim3(self.cluster_dim_x, self.cluster_dim_y, self.cluster_dim_z)


class WarpRow(NamedTuple):
    """A warp of a block. ``errorpc`` is the faulting instruction when ``errorpc_valid``."""

    section: int
    row: int
    errorpc: int
    warp_id: int | None = None
    valid_lanes: int | None = None
    active_lanes: int | None = None
    is_broken: int | None = None
    errorpc_valid: int | None = None
    num_regs: int | None = None
    shared_mem_size: int | None = None
    in_syscall_lanes: int | None = None
    cbu_active: int | None = None
    cbu_exited: int | None = None
    cbu_collective: int | None = None
    barrier_scope: int | None = None
    additional_barrier_info: int | None = None


class LaneRow(NamedTuple):
    """A thread. ``virtual_pc`` has run past the faulting instruction: never report it as the fault."""

    section: int
    row: int
    virtual_pc: int
    phys_pc: int | None = None
    lane: int | None = None
    thread_x: int | None = None
    thread_y: int | None = None
    thread_z: int | None = None
    exception: int | None = None
    call_depth: int | None = None
    syscall_call_depth: int | None = None
    cc_register: int | None = None
    cbu_thread_state: int | None = None
    rpc_lo: int | None = None
    rpc_hi: int | None = None

    @property
    def thread(self) -> Dim3 | None:
        return dim3(self.thread_x, self.thread_y, self.thread_z)


class BacktraceRow(NamedTuple):
    """One level of a thread's device call stack."""

    section: int
    row: int
    return_address: int
    virtual_return_address: int | None = None
    level: int | None = None


class MetaRow(NamedTuple):
    """Who wrote the dump, with which driver and settings (since r565)."""

    section: int
    row: int
    generator_name: int
    driver_major: int | None = None
    driver_minor: int | None = None
    cuda_major: int | None = None
    cuda_minor: int | None = None
    flags: int | None = None
    unix_time: int | None = None

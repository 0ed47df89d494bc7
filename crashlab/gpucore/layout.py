"""The dump format as one table: section types and the rows of every table, for all driver generations.

Source: NVIDIA's public ``cudacoredump.h``, releases r346 to r615. Fields were only ever appended, so
a row of stride N holds exactly the prefix of fields that fits into N bytes; the others are absent.
"""

from __future__ import annotations

ET_CORE = 4

SECTION_BASE = 0x80000000

MANAGED_MEMORY = 1
GLOBAL_MEMORY = 2
LOCAL_MEMORY = 3
SHARED_MEMORY = 4
REGISTERS = 5
ELF_IMAGE = 6
RELOCATED_IMAGE = 7
BACKTRACE = 8
DEVICE_TABLE = 9
CONTEXT_TABLE = 10
SM_TABLE = 11
GRID_TABLE = 12
CTA_TABLE = 13
WARP_TABLE = 14
LANE_TABLE = 15
MODULE_TABLE = 16
PREDICATES = 17
PARAMETERS = 18
UNIFORM_REGISTERS = 19
UNIFORM_PREDICATES = 20
CONSTANT_BANK_TABLE = 21
META = 22
CONVERGENCE_BARRIERS = 23

TYPE_NAMES = {
    MANAGED_MEMORY: "managed memory",
    GLOBAL_MEMORY: "global memory",
    LOCAL_MEMORY: "local memory",
    SHARED_MEMORY: "shared memory",
    REGISTERS: "registers",
    ELF_IMAGE: "cubin (as loaded)",
    RELOCATED_IMAGE: "cubin (relocated)",
    BACKTRACE: "backtrace",
    DEVICE_TABLE: "devices",
    CONTEXT_TABLE: "contexts",
    SM_TABLE: "SMs",
    GRID_TABLE: "grids",
    CTA_TABLE: "blocks",
    WARP_TABLE: "warps",
    LANE_TABLE: "lanes",
    MODULE_TABLE: "modules",
    PREDICATES: "predicates",
    PARAMETERS: "kernel parameters",
    UNIFORM_REGISTERS: "uniform registers",
    UNIFORM_PREDICATES: "uniform predicates",
    CONSTANT_BANK_TABLE: "constant banks",
    META: "metadata",
    CONVERGENCE_BARRIERS: "convergence barriers",
}

Field = tuple[str, int, str]
"""(name, byte offset, ``I`` for u32 or ``Q`` for u64)."""


def _fields(text: str) -> tuple[Field, ...]:
    """``"0:dev_name:Q 32:pci:I"`` → fields; keeps the tables below readable beside the header file."""
    out: list[Field] = []
    for item in text.split():
        offset, name, *kind = item.split(":")
        out.append((name, int(offset), kind[0] if kind else "I"))
    return tuple(out)


ROWS: dict[int, tuple[Field, ...]] = {
    DEVICE_TABLE: _fields(
        "0:dev_name:Q 8:dev_type:Q 16:sm_type:Q 24:dev_id 28:pci_bus_id 32:pci_dev_id 36:num_sms"
        " 40:num_warps_per_sm 44:num_lanes_per_warp 48:num_regs_per_lane 52:num_predicates 56:sm_major"
        " 60:sm_minor 64:instruction_size 68:status 72:num_uniform_regs 76:num_uniform_predicates"
        " 80:num_convergence_barriers"
    ),
    CONTEXT_TABLE: _fields(
        "0:context_id:Q 8:shared_window_base:Q 16:local_window_base:Q 24:global_window_base:Q"
        " 32:device_idx 36:tid"
    ),
    MODULE_TABLE: _fields("0:handle:Q"),
    GRID_TABLE: _fields(
        "0:grid_id:Q 8:context_id:Q 16:function:Q 24:function_entry:Q 32:module_handle:Q"
        " 40:parent_grid_id:Q 48:params_offset:Q 56:kernel_type 60:origin 64:status 68:num_regs"
        " 72:grid_dim_x 76:grid_dim_y 80:grid_dim_z 84:block_dim_x 88:block_dim_y 92:block_dim_z"
        " 96:launch_blocking 100:host_tid 104:cluster_dim_x 108:cluster_dim_y 112:cluster_dim_z"
        " 120:preferred_cluster_dim_x 124:preferred_cluster_dim_y 128:preferred_cluster_dim_z"
    ),
    CONSTANT_BANK_TABLE: _fields("0:address:Q 8:size 12:bank_id"),
    SM_TABLE: _fields(
        "0:sm_id 8:exception 12:errorpc_valid 16:errorpc:Q 24:cluster_target_valid"
        " 28:cluster_target_x 32:cluster_target_y 36:cluster_target_z 40:exception_string:Q"
    ),
    CTA_TABLE: _fields(
        "0:grid_id:Q 8:block_x 12:block_y 16:block_z 24:cluster_x 28:cluster_y 32:cluster_z"
        " 40:cluster_dim_x 44:cluster_dim_y 48:cluster_dim_z"
    ),
    WARP_TABLE: _fields(
        "0:errorpc:Q 8:warp_id 12:valid_lanes 16:active_lanes 20:is_broken 24:errorpc_valid 32:num_regs"
        " 40:shared_mem_size 48:in_syscall_lanes 52:cbu_active 56:cbu_exited 60:cbu_collective"
        " 64:barrier_scope 72:additional_barrier_info:Q"
    ),
    LANE_TABLE: _fields(
        "0:virtual_pc:Q 8:phys_pc:Q 16:lane 20:thread_x 24:thread_y 28:thread_z 32:exception"
        " 36:call_depth 40:syscall_call_depth 44:cc_register 48:cbu_thread_state 56:rpc_lo 60:rpc_hi"
    ),
    BACKTRACE: _fields("0:return_address:Q 8:virtual_return_address:Q 16:level"),
    META: _fields(
        "0:generator_name:Q 8:driver_major 12:driver_minor 16:cuda_major 20:cuda_minor 24:flags 28:unix_time"
    ),
}

ROW_LIMITS = {
    DEVICE_TABLE: 1024,
    CONTEXT_TABLE: 65536,
    MODULE_TABLE: 1 << 17,
    GRID_TABLE: 1 << 20,
    CONSTANT_BANK_TABLE: 4096,
    SM_TABLE: 4096,
    CTA_TABLE: 1024,
    WARP_TABLE: 256,
    LANE_TABLE: 64,
    BACKTRACE: 4096,
    META: 1,
}
"""More rows than any hardware can have mean a lying table: reading stops there and says so."""

META_FLAGS = {
    1: "skip_nonrelocated_elf_images",
    2: "skip_global_memory",
    4: "skip_shared_memory",
    8: "skip_local_memory",
    16: "skip_abort",
    32: "skip_constbank_memory",
}

EXCEPTION_NAMES = {
    1: "CUDBG_EXCEPTION_LANE_ILLEGAL_ADDRESS",
    2: "CUDBG_EXCEPTION_LANE_USER_STACK_OVERFLOW",
    3: "CUDBG_EXCEPTION_DEVICE_HARDWARE_STACK_OVERFLOW",
    4: "CUDBG_EXCEPTION_WARP_ILLEGAL_INSTRUCTION",
    5: "CUDBG_EXCEPTION_WARP_OUT_OF_RANGE_ADDRESS",
    6: "CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS",
    7: "CUDBG_EXCEPTION_WARP_INVALID_ADDRESS_SPACE",
    8: "CUDBG_EXCEPTION_WARP_INVALID_PC",
    9: "CUDBG_EXCEPTION_WARP_HARDWARE_STACK_OVERFLOW",
    10: "CUDBG_EXCEPTION_DEVICE_ILLEGAL_ADDRESS",
    11: "CUDBG_EXCEPTION_LANE_MISALIGNED_ADDRESS",
    12: "CUDBG_EXCEPTION_WARP_ASSERT",
    13: "CUDBG_EXCEPTION_LANE_SYSCALL_ERROR",
    14: "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS",
    15: "CUDBG_EXCEPTION_LANE_NONMIGRATABLE_ATOMSYS",
    16: "CUDBG_EXCEPTION_LANE_INVALID_ATOMSYS",
    17: "CUDBG_EXCEPTION_CLUSTER_OUT_OF_RANGE_ADDRESS",
    18: "CUDBG_EXCEPTION_CLUSTER_BLOCK_NOT_PRESENT",
    19: "CUDBG_EXCEPTION_WARP_STACK_CANARY",
    20: "CUDBG_EXCEPTION_WARP_TMEM_ACCESS_CHECK",
    21: "CUDBG_EXCEPTION_WARP_TMEM_LEAK",
    22: "CUDBG_EXCEPTION_WARP_CALL_REQUIRES_NEWER_DRIVER",
    23: "CUDBG_EXCEPTION_WARP_MISALIGNED_PC",
    24: "CUDBG_EXCEPTION_WARP_PC_OVERFLOW",
    25: "CUDBG_EXCEPTION_WARP_MISALIGNED_REG",
    26: "CUDBG_EXCEPTION_WARP_ILLEGAL_INSTR_ENCODING",
    27: "CUDBG_EXCEPTION_WARP_ILLEGAL_INSTR_PARAM",
    28: "CUDBG_EXCEPTION_WARP_OUT_OF_RANGE_REGISTER",
    29: "CUDBG_EXCEPTION_WARP_INVALID_CONST_ADDR",
    30: "CUDBG_EXCEPTION_WARP_MMU_FAULT",
    31: "CUDBG_EXCEPTION_WARP_ARRIVE",
    32: "CUDBG_EXCEPTION_CLUSTER_POISON",
    33: "CUDBG_EXCEPTION_WARP_API_STACK_ERROR",
    34: "CUDBG_EXCEPTION_WARP_BLOCK_NOT_PRESENT",
    35: "CUDBG_EXCEPTION_WARP_USER_STACK_OVERFLOW",
    36: "CUDBG_EXCEPTION_WARP_TMA_SYSCALL",
}


def exception_name(code: int) -> str:
    """The enumerator of the CUDA debugger API for a code, or a name that only repeats the number."""
    return EXCEPTION_NAMES.get(code, f"CUDBG_EXCEPTION_{code}")

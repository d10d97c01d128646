/* What stands in for the CUDA runtime's graphs: of empty kernels, or of links. */
#include "scripted_machine.h"

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    assert_ptr_equal(stream, script_stream());
    assert_false(machine.capturing);
    cudaError_t code = script_call();
    machine.capturing = code == cudaSuccess;
    machine.nodes = machine.links = 0;
    return code;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    (void)stream;
    assert_true(machine.capturing);
    machine.capturing = false;
    cudaError_t code = script_call();
    *graph = NULL;
    if (code == cudaSuccess) {
        *graph = (cudaGraph_t)&machine.graphs;
        ++machine.graphs;
    }
    return code;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    assert_ptr_equal(graph, &machine.graphs);
    (void)nodes, (void)count;
    return cudaErrorNotSupported;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags)
{
    (void)flags;
    assert_ptr_equal(graph, &machine.graphs);
    cudaError_t code = script_call();
    if (code == cudaSuccess) {
        int *nodes = &machine.executable_nodes[machine.links > 0];
        *nodes = machine.nodes + machine.links;
        *executable = (cudaGraphExec_t)nodes;
        ++machine.executables;
    }
    return code;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    assert_ptr_equal(graph, &machine.graphs);
    return script_give_back(&machine.graphs);
}

static int executable_kind(cudaGraphExec_t executable)
{
    ptrdiff_t kind = (int *)executable - machine.executable_nodes;
    assert_in_range(kind, 0, 1);
    return (int)kind;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    machine.executable_nodes[executable_kind(executable)] = 0;
    return script_give_back(&machine.executables);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream)
{
    static const char *const kinds[] = {"launch gap graph", "launch gap dependent graph"};
    int kind = executable_kind(executable);
    double each = kind ? script.link_node_time : script.node_time;
    script.ran[roof_kind_find(kinds[kind])] = true;
    return script_enqueue(machine.executable_nodes[kind] * each * script_next_jitter(), stream);
}

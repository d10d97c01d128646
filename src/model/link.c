#include "model/link.h"

#include "base/array.h"
#include "base/stats.h"

const char *const link_operation_name[] = {"copy", "all-reduce", "all-gather", "send-receive",
                                           NULL};

#define L(member, type, units, ...) FIELD(struct link, member, type, units, __VA_ARGS__)
const struct field link_fields[] = {
    FIELD_OF_FLAGS(struct link, operation, link_operation_name, "what the devices do", ALWAYS,
                   .comment = "send-receive: each sends to the next device, all at once"),
    L(from, FIELD_TEXT, "1", "UUID of the device that a copy comes from"),
    L(to, FIELD_TEXT, "1", "UUID of the device that a copy goes to"),
    L(devices, FIELD_INTEGER, "1", "devices that take part"),
    L(nodes, FIELD_INTEGER, "1", "nodes that take part",
      .comment = "2 with link_node_to: each device exchanges with one of the other node"),
    L(to_rank, FIELD_INTEGER, "1", "a rank of the other node", JSON_ONLY),
    FIELD_OF_FLAGS(struct link, peer_access, field_no_yes, "a copy does not go through the host"),
    L(nccl, FIELD_INTEGER, "1", "version of NCCL, 22803 is 2.28.3"),
    L(bytes, FIELD_DOUBLE, "byte", "size of a copy, or of the result that each device has", ALWAYS),
    L(time, FIELD_DOUBLE, "s", "time of one of several in a row, median of the samples", ALWAYS),
    L(bandwidth, FIELD_DOUBLE, "byte s-1", "bandwidth of the bus", .origin = FIELD_DERIVED,
      .comment = "bytes / time, of all-reduce times 2 (n - 1) / n, of all-gather times (n - 1) / n",
      ALWAYS),
    {0},
};

size_t link_size(const struct link *link, int i)
{
    static const size_t sizes[][LINK_SIZES + 1] = {
        {1 << 28, 1 << 20, 1},                            /* NCCL and copies: pairs */
        {1 << 30, 1 << 28, 1 << 24, 1 << 20, 1 << 16, 1}, /* all members */
        {1 << 24, 1 << 20, 1},                            /* MPI: pairs */
        {1 << 24, 1 << 20, 1 << 16, 1}};                  /* all members */
    const bool copy = link->operation == LINK_COPY;
    const bool mpi = !copy && link->nccl == FIELD_MISSING;
    const bool all = !copy && link->to_rank == FIELD_MISSING;
    const size_t size = sizes[2 * mpi + all][i], unit = 16 * (size_t)link->devices;
    return size <= unit ? (size ? unit : 0) : size / unit * unit;
}

enum status link_list_add(struct link_list *list, const struct link *link, struct error *error)
{
    return ARRAY_ADD(list->links, list->count, *link)
               ? STATUS_OK
               : error_set(error, STATUS_SYSTEM, "no memory for a link");
}

enum status link_list_measured(struct link_list *list, struct link *link, size_t bytes,
                               double seconds[LINK_SAMPLES], struct error *error)
{
    /* Traffic of the busiest link / bytes: doc/PERFORMANCE.md of nccl-tests, "Bus bandwidth". */
    const double others = ((double)link->devices - 1) / (double)link->devices;
    const double carried[LINK_OPERATIONS] = {1, 2 * others, others, 1};
    link->bytes = (double)bytes;
    link->time = stats_sort(seconds, LINK_SAMPLES);
    link->bandwidth = carried[link->operation] * link->bytes / link->time;
    return link_list_add(list, link, error);
}

void link_list_clear(struct link_list *list)
{
    free(list->links);
    *list = (struct link_list){NULL, 0};
}

void link_list_encode(const struct link_list *list, json_t *object)
{
    json_t *links = list->count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < list->count; ++i)
        json_array_append_new(links, fields_encode(link_fields, &list->links[i]));
    if (links)
        json_object_set_new(object, "links", links);
}

enum status link_list_decode(struct json_text object, struct link_list *list, struct error *error)
{
    struct json_reader reader = json_reader_array(json_member(object, "links"));
    struct json_text element;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && json_reader_next(&reader, NULL, &element)) {
        struct link link = {0};
        status = fields_decode(link_fields, element, &link, error);
        status = status ? status : fields_check(link_fields, &link, error);
        error_prefix(error, status, "link %zu", list->count + 1);
        status = status ? status : link_list_add(list, &link, error);
    }
    if (status)
        link_list_clear(list);
    return status;
}

/* The fastest ways to do the roofs of a node's devices, before they are measured.
 *
 * Devices of one model share the search: each looks for the ways of its part of the roofs, all at once, and loads
 * what that needs. Then each checks that the others' ways are as fast on it, and has all of them proven. */
#ifndef ROOFSWEEP_NODE_TUNING_H
#define ROOFSWEEP_NODE_TUNING_H

#include "ranks/node.h"

/* Collective over the node's ranks. Sets models[]: which of them have the same model. */
void node_compare_models(struct node *node);
/* Collective over the node's ranks. Sets tuned[] and way[]. A worker that is lost is replaced, and the new
 * one tuned. */
void node_tune(struct node *node);
/* A worker was lost over a roof, which is not tried again: a new one is tuned with what is known. */
void node_recover(struct node *node, int lost_over);

#endif

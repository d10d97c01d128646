/* A worker ends with its rank, whatever state it is in, and all that it has started ends with
 * it. */
#ifndef ROOFSWEEP_LIFELINE_H
#define ROOFSWEEP_LIFELINE_H

/* First thing in a worker, before it has threads of its own. From then on the kernel kills the
 * worker as soon as the thread that started it ends. If that is a rank, whose socket is standard
 * input, a small process outside the worker's group then kills what is left of that group, and
 * ends. It overwrites `name`, its argv[0], by its own. */
void lifeline_tie(char *name);

#endif

/* What a rank and its worker say to each other: one JSON object per line, in both directions.
 *
 * Requests (a worker can be run by hand: echo '{"op":"describe"}' | roofsweep-worker-cpu):
 *   {"op":"devices"}                                  -> {"reply":"devices","count":8}
 *   {"op":"describe","index":0,"counters":"auto"}     -> {"reply":"device","device":{...}}
 *   {"op":"tune","memory":["dram"],"compute":["fp32"],"launch":true,"transfer":true,
 *    "prove":true,"ways":{"dram read":[3,4.1e12],...},"later":["fp32 vector",...]}
 *                                                     -> {"reply":"roofs","roofs":["dram read",
 *                                                     ...],
 *                                                         "ways":{"dram read":[3,4.1e12], ...}}
 *   {"op":"roof","name":"dram read","condition":"together","start":1763.5,"sustained":true,
 *    "only_sustained":true,"hold":true}               -> {"reply":"roof","roof":{...}}
 *   {"op":"release"}                                  -> {"reply":"roofs","roofs":[]}
 *   {"op":"roofs", ... as tune, "sustained":true}
 *                                                     -> {"reply":"device","device":{... with
 *                                                     roofs}}
 *   {"op":"measure","configuration":"conv2d batch=16 ...","seed":1,"warmup":5,"iterations":20,
 *    "stop":0.005,"min_time":0.5,"max_time":15,"counters":"auto","kernels":false,
 *    "verify":true,"energy":false,"folder":"/home/me/sweeps","timeout":120,"count_later":true}
 *                                                     -> {"reply":"record","record":{...}}, or
 *                                                        {"reply":"timed","configuration":"conv2d
 *                                                        ..."}
 *   {"op":"count"}                                    -> {"reply":"record","record":{...}}
 * Describe opens the device and, unless "counters" is "off", tries its counters. Tune finds the
 * fastest way to do each roof. Of `ways`, which other devices of the same model have found, it
 * tries only those that are as fast here. Those of `later` are left to another tune, which keeps
 * what this one found, and proves all. Roof then measures, beginning at `start` (s since the epoch;
 * 0: at once). With "sustained" a compute roof is also measured once the clock has settled. With
 * "only_sustained" it is measured only then: the answer has no burst. With "hold" the device goes
 * on with the same work after the reply, until the next request comes. Release forgets it and frees
 * its memory. Roofs does all three, each roof alone.
 *
 * With "count_later" a row may wait once it is timed and traced, so that counters are read for
 * several rows together. Then the answer is "timed". Count answers with the record of the row that
 * has waited longest, and is asked once for each; the first time it counts all that wait. A row
 * that has nothing to count, and one of a device that counts rows one by one, does not wait.
 *
 * Measure with "choice":{"algorithm":"engine-38 k2=5",...} (choice.h) runs that algorithm instead
 * of a search, if it can be had and has the same kernels.
 *
 * Folder and timeout are for programs: where they run, and how long all runs of one may take.
 *
 * Whatever is left out has its default; the device opens by itself. An unknown key, an unknown word
 * and a wrong type are refused, with the key's name and what is allowed: passed over in silence,
 * they would measure something else. A request that fails is answered with
 *   {"reply":"error","status":"device","text":"..."};
 * after the status "device" the worker ends, because its device is lost. End of input ends it
 * too. */
#ifndef ROOFSWEEP_PROTOCOL_H
#define ROOFSWEEP_PROTOCOL_H

#include "model/reply.h"
#include "model/request.h"

#endif

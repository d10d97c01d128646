/* CUPTI's subscriber as a script: it is told of modules that are unloaded. */
#ifndef ROOFSWEEP_SCRIPTED_MODULES_H
#define ROOFSWEEP_SCRIPTED_MODULES_H

/* A module is unloaded: whoever has subscribed is told. */
void cupti_unload(void);

#endif

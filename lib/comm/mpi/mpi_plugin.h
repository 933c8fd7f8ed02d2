#pragma once

#include <stddef.h>

/* What libshardtool_mpi.so gives: MPI's calls behind functions of C, so that neither exceptions nor
   types of either side's C++ library cross. Nothing here waits, but for begin and finalize. Calls
   come from one thread at a time. */

#ifdef __cplusplus
extern "C" {
#endif

/** Changes when the functions do; the program refuses a plugin of another version. */
#define SHARDTOOL_MPI_PLUGIN_VERSION 2
#define SHARDTOOL_MPI_PLUGIN_SYMBOL "shardtool_mpi_plugin"

/** A message on its way. */
struct shardtool_mpi_request;

struct shardtool_mpi_functions {
  int version;
  /** The library's name and version; before begin, too. */
  void (*name)(char* text, size_t room);
  /** Initialises MPI. 0, or another number with a sentence in `text`. */
  int (*begin)(int* rank, int* size, char* text, size_t room);
  /** Begins to send; the bytes must stay until it is done. Null when MPI refuses. */
  struct shardtool_mpi_request* (*send)(int to, const void* bytes, int count);
  /** Whether a message of this process can be received: 1 with its length, 0, or -1 on failure.
      After 1, receive must be called before the next probe. */
  int (*probe)(int from, int* count);
  /** Begins to receive what probe found. Null when MPI refuses. */
  struct shardtool_mpi_request* (*receive)(void* bytes, int count);
  /** 1 when it is done, and the request is gone; 0 while it is not; -1 on failure. */
  int (*test)(struct shardtool_mpi_request* request);
  /** Waits for all processes. */
  void (*finalize)(void);
  /** Ends all processes of the launch, this one too. */
  void (*abort)(int status);
};

typedef const struct shardtool_mpi_functions* (*shardtool_mpi_plugin_function)(void);

#ifdef __cplusplus
}
#endif

#pragma once

#include <stddef.h>

/* Interface of libshardtool_mpi.so: MPI's calls behind C functions, so that neither exceptions nor
   types of either side's C++ library cross. Only begin and finalize wait. Calls come from one
   thread at a time. */

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the functions; the program refuses a plugin of another version. */
#define SHARDTOOL_MPI_PLUGIN_VERSION 2
#define SHARDTOOL_MPI_PLUGIN_SYMBOL "shardtool_mpi_plugin"

/** Message being sent or received. */
struct shardtool_mpi_request;

struct shardtool_mpi_functions {
  int version;
  /** Writes the library's name and version; works before begin, too. */
  void (*name)(char* text, size_t room);
  /** Initialises MPI. Returns 0, or another number with a message in `text`. */
  int (*begin)(int* rank, int* size, char* text, size_t room);
  /** Begins to send; the bytes must stay valid until done. Null on failure. */
  struct shardtool_mpi_request* (*send)(int to, const void* bytes, int count);
  /** Checks for a message of this process: 1 with its length, 0 if absent, or -1 on failure.
      After 1, receive must be called before the next probe. */
  int (*probe)(int from, int* count);
  /** Begins to receive the message that probe found. Null on failure. */
  struct shardtool_mpi_request* (*receive)(void* bytes, int count);
  /** Returns 1 when done, after freeing the request; 0 while in progress; -1 on failure. */
  int (*test)(struct shardtool_mpi_request* request);
  /** Waits for all processes. */
  void (*finalize)(void);
  /** Ends all processes of the launch, including this one. */
  void (*abort)(int status);
};

typedef const struct shardtool_mpi_functions* (*shardtool_mpi_plugin_function)(void);

#ifdef __cplusplus
}
#endif

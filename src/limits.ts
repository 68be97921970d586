// Every bound of the harness, by name, unit last. A wait or a size that is not here is not bounded.

const KiB = 1024, MiB = 1024 * KiB, second = 1000, minute = 60 * second;

export const limits = {
  // Doors
  bodyBytesMax: 10 * MiB,
  stateLineBytesMax: 16 * MiB,
  threadPointsMax: 512,
  messageIdCharsMax: 512,
  nameCharsMax: 256,
  /** A JSON turn answers 202 `running` past this. */
  turnReplyMs: 240 * second,
  /** A chat completion waits this long for the conversation's running turn: it never joins one. */
  chatWaitMs: 60 * second,
  /** Events in which a client library's repeat of the newest message is looked for. */
  retryEventsBack: 64,
  keepAliveMs: 15 * second,
  /** An answer of ours that a reader has not taken by then counts as not delivered. */
  deliverMs: 5 * second,
  /** Bytes of a stream that wait for a slow reader; past it the caller counts as gone. */
  streamBytesMax: 8 * MiB,
  /** Answers that one call of recover may name as taken. */
  takenIdsMax: 10_000,
  listLimit: 100,
  listLimitMax: 1000,
  /** Writes of config.json that another process may be in between of. */
  configTriesMax: 5,
  /** A follower of a conversation looks this often for new events. */
  followMs: 250,
  // Log
  eventBytesMax: 16 * MiB,
  /** Events in which a message's id is looked for. */
  idEventsBack: 1000,
  // Store
  /** A conversation's folder name that says its thread whole. */
  folderCharsMax: 100,
  /** First wait for a lock that is held, and the longest between two tries. */
  lockTryMs: 1,
  lockTryMsMax: 20,
  lockWaitMs: 15 * second,
  bridgeCallMs: 30 * second,
  leaseTermMs: 60 * second,
  /** How often a lease that another holds is looked at by who waits for it. */
  leaseWatchMs: second,
  leaseTryMs: 8 * second,
  /** A lease older than its turn's deadline by this is dead. */
  leaseOverMs: minute,
  tokensKept: 16,
  storeTriesMax: 5,
  storeRetryMs: 200,
  doneKept: 256,
  // Turn
  turnDeadlineMs: 30 * minute,
  recoverTriesMax: 3,
  recoverParallel: 8,
  /** A running turn looks this often whether it was asked to end. */
  endLookMs: second,
  roundsMax: 8,
  resultBytesMax: 32 * KiB,
  /** Conversations whose newest events a process keeps at hand. */
  conversationsWarm: 64,
  /** Times a conversation that another process just put in place is looked at anew. */
  movedTriesMax: 3,
  /** Newest lines of a log whose place a process keeps. */
  placesKept: 256,
  /** Events written in one step where many are copied, and their bytes. */
  copyEvents: 1024,
  copyBytes: 4 * MiB,
  /** A conversation half put in place that nobody added to for so long is given up. */
  stagedMsMax: 60 * minute,
  /** Rows removed in one step. */
  removeRows: 1000,
  /** What stays of SQLite's write-ahead file once it was taken over. */
  walBytesKept: 4 * MiB,
  /** One read of a log. */
  readBytes: 256 * KiB,
  /** The first read from the end of a log. */
  endBytes: 32 * KiB,
  /** A lease and marks, or narrowed tools. */
  documentBytesMax: 16 * MiB,
  /** The first read of a file that is read whole. */
  wholeBytes: 16 * KiB,
  /** A file read whole through the store. */
  fileBytesMax: 64 * MiB,
  /** Events of a conversation kept at hand between turns, at least; its window is, too. */
  tailKept: 64,
  // Prompt
  /** A window's start is found within so many of the newest events. */
  checkpointEvents: 32,
  /** How far back a window is looked for in a conversation that no answer of ours ever marked. */
  windowSearchEvents: 20_000,
  /** Tokens that the conversation always has, however large instructions and tools are. */
  windowRoomMin: 1024,
  summaryTokensMin: 256,
  summaryTokensMax: 2048,
  /** Rounds in which notes are saved before a summary. */
  noteRoundsMax: 2,
  /** No text is cut below this, tokens. */
  cutTokensMin: 32,
  /** Code points of the first message that stays, quoted where a summary is asked for. */
  quoteCharsMax: 120,
  /** Code points of a name in a message's head. */
  headNameCharsMax: 64,
  notesBytesMax: 4 * KiB,
  /** A file of instructions, or a skill's, over this is not read. */
  instructionBytesMax: MiB,
  skillNameCharsMax: 64,
  skillDescriptionCharsMax: 1024,
  /** The head of a skill's file, between its two lines of `---`. */
  skillHeadCharsMax: 64 * KiB,
  /** Folders on the way to the one whose instructions are read. */
  repositoryFoldersMax: 16,
  // Model
  modelTriesMax: 4,
  modelRetryMs: 500,
  modelRetryMsMax: 30 * second,
  modelSilenceMs: 5 * minute,
  /** An answer that has its end waits this long for the count of its tokens. */
  modelLingerMs: 5 * second,
  modelAnswerBytesMax: 32 * MiB,
  modelErrorBytesMax: 64 * KiB,
  modelErrorCharsMax: 400,
  /** A tool's schema, once mended. */
  toolSchemaCharsMax: 64 * KiB,
  toolSchemaNodesMax: 4000,
  toolSchemaDepthMax: 24,
  /** Listing the models of a provider. */
  modelListMs: 5 * second,
  modelListBytesMax: 16 * MiB,
  /** Asking whether a runtime on this machine is there. */
  modelProbeMs: 500,
  /** What was not there is asked for again after this. */
  modelProbeAgainMs: 15 * second,
  /** What a runtime says it runs a model with stands this long. */
  modelFactsMs: 30 * second,
  /** A runtime that loads a model, so that it can say with what window. */
  modelLoadMs: minute,
  factsFileBytesMax: MiB,
  /** Settings whose chosen model a process keeps at hand. */
  modelsKept: 256,
  // Tools
  /** Starting a tool: its session and its list. All starts of a turn together take no longer. */
  toolStartMs: 30 * second,
  /** A turn waits this long for a tool that was never listed and was waited for in vain before. */
  toolStartAgainMs: 3 * second,
  /** A server that does not say by then whether it speaks the newest revision is asked in the older one. */
  toolProbeMs: 5 * second,
  /** Which revision a server speaks is asked again after this. */
  toolEraMs: 24 * 60 * minute,
  /** A call without an answer or a word of progress, and a call however much progress it tells. */
  toolSilenceMs: 5 * minute,
  toolCallMs: 20 * minute,
  /** A kept session ends when none has used it for so long, or so long after its start. */
  toolIdleMs: 10 * minute,
  toolSessionMs: 60 * minute,
  /** Ending a session; telling a server that a call is given up. */
  toolEndMs: 5 * second,
  toolReplyBytesMax: 16 * MiB,
  /** Times that a session listens for what its server has to say by itself, and what it refuses of it in words. */
  toolListensMax: 3,
  toolRefusalsMax: 64,
  /** First wait for a stream that broke off, and how often it is asked for again in vain. */
  toolResumeMs: 250,
  toolResumesMax: 5,
  toolPagesMax: 100,
  toolCallsListed: 512,
  toolListBytesMax: 4 * MiB,
  toolNameCharsMax: 128,
  toolDescriptionCharsMax: 8 * KiB,
  toolInstructionsBytesMax: 2 * KiB,
  /** Characters of what a server says of its trouble. */
  toolErrorCharsMax: 400,
  // Process
  drainMs: 25 * second,
  /** A signal that comes again within this was sent once. */
  signalTwiceMs: second / 2,
} as const;

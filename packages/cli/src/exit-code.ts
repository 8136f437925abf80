/** What the process's exit code tells. They are part of the command's interface: documented in its help. */
export const EXIT = {
  done: 0,
  /** Anything that nobody expected. */
  failed: 1,
  /** The command line, or a file that it names, is wrong. */
  usage: 2,
  /** No platform was found, or it does not answer. */
  noPlatform: 3,
  /** The platform refused: credential, grant, disabled instance. */
  refused: 4,
  /** What was named does not exist. */
  notFound: 5,
  /** The action answered with one of its declared errors. */
  declared: 6,
  /** Nobody answered in time, or nobody is there to answer. */
  unavailable: 7,
  /** Ended by a second Ctrl-C, before everything was closed. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export const exitCodeHelp = `
Exit codes:
  0 done   1 failed   2 wrong usage   3 no platform   4 refused   5 not found
  6 the action answered with a declared error   7 nobody answered`;

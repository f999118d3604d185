const MIB = 1_024 * 1_024;

/** Every limit of the platform's routes, with its reason. */
export const platformLimits = {
  retryAfterMs: 1_000,
  /** Of a document: as of a file in a folder of documents. */
  bodyBytes: MIB,
  /** As of such a file: the code that reads documents recurses. */
  bodyDepth: 64,
  /** A file of this size has no more. */
  bodyValues: 100_000,
  /** Problems that one refusal lists; more are not read before the first are mended. */
  listedProblems: 10,
  /** Largest `int` of PostgreSQL. */
  version: 2_147_483_647,
  /** Of an agent's id: as of a parameter of an address. */
  idCharacters: 128,
  /** Of its name and version. */
  nameCharacters: 200,
  urlCharacters: 2_048,
  /** Registered at once: beyond what a deployment has. */
  agents: 10_000,
  pageDocuments: 1_000,
  defaultPage: 100,
} as const;

export type PlatformLimits = { readonly [Name in keyof typeof platformLimits]: number };

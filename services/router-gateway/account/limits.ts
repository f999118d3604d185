const KIB = 1_024;

/** Every limit of the routes of keys, credit and usage, with its reason. */
export const accountLimits = {
  retryAfterMs: 1_000,
  /** Of a request; the longest names and e-mail address need 3 KiB. */
  bodyBytes: 64 * KIB,
  nameCharacters: 200,
  /** The longest address of SMTP. */
  emailCharacters: 254,
  /** Of the place where a key was found: an address of a page, or a sentence. */
  whereCharacters: 500,
  /** Places of one exposure of which the owner is notified. */
  mailsPerExposure: 10,
  /** Per minute or at once: beyond what a deployment serves, and sums of them stay exact. */
  rate: 1_000_000_000,
  /** A `code_challenge`, its verifier (RFC 7636: 128) and a code. */
  challengeCharacters: 512,
  callbackCharacters: 2_048,
  /** Validity of a code of OAuth. */
  codeMs: 600_000,
  /** Until then an expired code is said to have expired; later it is unknown. */
  expiredCodeMs: 86_400_000,
  /** Of an address, each with a code or a key that may be guessed. */
  triesPerMinute: 60,
  /** Keys of one page. */
  pageKeys: 100,
  /** Each row before it is read. */
  offset: 1_000_000,
  /** For the row of a generation whose call has just ended: the ledger is written behind. Clients wait about as long. */
  generationWaitMs: 2_000,
  /** One query for all that wait; the ledger's writers are about as fast. */
  generationPollMs: 100,
  /** Generations that are waited for at once; beyond it requests are refused. */
  generationWaiters: 1_000,
  /** Days of activity, the current one included. */
  activityDays: 30,
  /** Of one response, about 4 MiB; beyond it the caller is asked for one date or one key. */
  activityRows: 10_000,
} as const;

export type AccountLimits = { readonly [Name in keyof typeof accountLimits]: number };

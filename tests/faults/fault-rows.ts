import type { UpstreamScenario } from '../../services/router-worker/providers/conformance/under-test.ts';

/** What a client gets of a call whose first provider has the fault. */
export type Ending =
  /** The second provider's answer: nothing of the first was shown. */
  | { kind: 'fallback' }
  /** The first provider's error, and no second try. */
  | { kind: 'refused'; status: number; type: string }
  /** The error of the last provider: both fail. */
  | { kind: 'exhausted'; status: number; type: string }
  /** The text until then, and the error; no second try. */
  | { kind: 'broken'; text: string; reasoning?: string }
  /** The first provider's answer. `counted`: it has said what it used. */
  | { kind: 'answer'; counted: boolean };

export interface FaultRow {
  fault: string;
  scenario: UpstreamScenario;
  /** Nothing listens at its address. */
  isClosed?: true;
  /** The status of its attempt in the record; absent: 502. */
  recorded?: number;
  ending: Ending;
}

export const PIECES = ['Grüße ', 'aus ', '日本'] as const;
export const TEXT = PIECES.join('');
const text = [...PIECES];
const fallback: Ending = { kind: 'fallback' };
const answer: Ending = { kind: 'answer', counted: true };
const broken = (pieces: number, reasoning = ''): Ending => ({ kind: 'broken', text: PIECES.slice(0, pieces).join(''), ...(reasoning && { reasoning }) });
const refused = (status: number, type: string): Ending => ({ kind: 'refused', status, type });

/** The statuses of a provider, and what its attempt is recorded with: what clients would get. */
const FAILING = { 401: 502, 402: 502, 403: 502, 404: 502, 408: 502, 429: 429, 500: 502, 502: 502, 503: 503, 529: 503 };

const refusals: FaultRow[] = [
  ...Object.entries(FAILING).map(
    ([status, recorded]): FaultRow => ({ fault: `answers ${status}`, scenario: { refuse: { status: Number(status) } }, recorded, ending: fallback }),
  ),
  { fault: 'has no quota left', scenario: { refuse: { status: 429, code: 'insufficient_quota' } }, recorded: 502, ending: fallback },
  { fault: 'answers 400', scenario: { refuse: { status: 400 } }, ending: refused(400, 'invalid_request') },
  { fault: 'answers 422', scenario: { refuse: { status: 422 } }, ending: refused(400, 'invalid_request') },
  { fault: 'answers 413', scenario: { refuse: { status: 413 } }, ending: refused(413, 'payload_too_large') },
  {
    fault: 'says that the prompt is too long',
    scenario: { refuse: { status: 400, code: 'context_length_exceeded' } },
    ending: refused(400, 'context_length_exceeded'),
  },
  { fault: 'refuses the content', scenario: { refuse: { status: 400, code: 'content_policy_violation' } }, ending: refused(403, 'content_policy_violation') },
];

const early: FaultRow[] = [
  { fault: 'refuses the connection', scenario: {}, isClosed: true, ending: fallback },
  { fault: 'hangs up', scenario: { fault: 'hang-up' }, ending: fallback },
  { fault: 'sends no headers', scenario: { fault: 'silent' }, ending: fallback },
  { fault: 'sends headers and nothing else', scenario: { text, fault: 'stall', after: 0 }, ending: fallback },
  { fault: 'sends a page of HTML', scenario: { fault: 'garbage' }, ending: fallback },
  { fault: 'sends a malformed line first', scenario: { text, fault: 'malformed', after: 0 }, ending: fallback },
  { fault: 'ends without content', scenario: { text, fault: 'ends-early', after: 0 }, ending: fallback },
  { fault: 'breaks the connection before any content', scenario: { text, fault: 'cut', after: 0 }, ending: fallback },
  ...Object.entries({ server_error: 502, rate_limit_exceeded: 429, overloaded_error: 503, invalid_api_key: 502, timeout: 502 }).map(
    ([errorCode, recorded]): FaultRow => ({
      fault: `sends ${errorCode} inside of a 200 first`,
      scenario: { fault: 'error-event', after: 0, errorCode },
      recorded,
      ending: fallback,
    }),
  ),
  {
    fault: 'sends invalid_request_error inside of a 200 first',
    scenario: { fault: 'error-event', after: 0, errorCode: 'invalid_request_error' },
    ending: refused(400, 'invalid_request'),
  },
];

const inBoth: FaultRow[] = [
  {
    fault: 'answers 500, and so does the second',
    scenario: { refuse: { status: 500 } },
    ending: { kind: 'exhausted', status: 502, type: 'provider_unavailable' },
  },
  {
    fault: 'answers 429, and so does the second',
    scenario: { refuse: { status: 429, headers: { 'retry-after': '7' } } },
    ending: { kind: 'exhausted', status: 429, type: 'rate_limit_exceeded' },
  },
  {
    fault: 'answers 529, and so does the second',
    scenario: { refuse: { status: 529 } },
    ending: { kind: 'exhausted', status: 503, type: 'provider_overloaded' },
  },
  {
    fault: 'breaks off before any content, and so does the second',
    scenario: { text, fault: 'cut', after: 0 },
    ending: { kind: 'exhausted', status: 502, type: 'provider_unavailable' },
  },
];

const late: FaultRow[] = [
  ...(['cut', 'ends-early', 'malformed', 'error-event', 'stall'] as const).map(
    (fault): FaultRow => ({ fault: `has the fault ${fault} after two pieces`, scenario: { text, fault, after: 2 }, ending: broken(2) }),
  ),
  ...(['cut', 'malformed', 'error-event'] as const).map(
    (fault): FaultRow => ({
      fault: `has the fault ${fault} behind its reasoning`,
      scenario: { reasoning: ['let me ', 'see'], text, fault, after: 0 },
      ending: broken(0, 'let me see'),
    }),
  ),
];

const odd: FaultRow[] = [
  { fault: 'finishes twice', scenario: { text, isFinishedTwice: true }, ending: answer },
  { fault: 'sends no usage', scenario: { text, usage: 'never' }, ending: { kind: 'answer', counted: false } },
  { fault: 'sends its usage behind the end', scenario: { text, usage: 'after-end' }, ending: answer },
  { fault: 'sends no end mark', scenario: { text, hasNoEndMarker: true }, ending: answer },
  { fault: 'leaves the connection open behind the end', scenario: { text, staysOpen: true }, ending: answer },
  { fault: 'ends lines with CRLF', scenario: { text, newline: '\r\n' }, ending: answer },
  { fault: 'sends byte by byte', scenario: { text, pieceBytes: 1, newline: '\r\n' }, ending: answer },
  { fault: 'sends its headers late', scenario: { text, headersAfterMs: 200 }, ending: answer },
  { fault: 'does not stream', scenario: { text, isWhole: true }, ending: answer },
];

/** What a provider may do, in any dialect (router-facts 5.3, 15, 17). */
export const FAULT_ROWS: readonly FaultRow[] = [...refusals, ...early, ...inBoth, ...late, ...odd];

/** Whether the fault ends by a timeout alone. */
export function isSilent({ scenario: { fault } }: FaultRow): boolean {
  return fault === 'silent' || fault === 'stall';
}

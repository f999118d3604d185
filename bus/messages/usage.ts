import { z } from 'zod';
import { quoted } from './quoted.ts';
import { usageDecision } from './usage-decision.ts';

/** The version that this release reads and writes. */
export const USAGE_RECORD_VERSION = 1;

const count = z.number().int().min(0);

/** One try of a call at an endpoint. */
const attempt = z.object({
  /** Slug of the provider. */
  provider: z.string(),
  providerName: z.string(),
  model: z.string(),
  /** HTTP status of its failure as clients get it; 200: it answered. */
  status: z.number().int(),
  /** Code of the error; null: it answered. */
  code: z.string().nullable(),
  startedAtMs: z.number(),
  /** Until the first content; null: none came. */
  firstTokenMs: z.number().nullable(),
  durationMs: z.number(),
  /** What it cost the operator, in billionths of a US dollar, also where the caller pays nothing; null: the endpoint has no prices. */
  costNano: count.nullable(),
});
export type UsageAttempt = z.infer<typeof attempt>;

/**
 * What one call used, on `usage.record`: exactly one per call that a worker has ended; the message id is the generation id. Without texts of messages. Writers
 * keep the order of the first fields, up to `costNano`: then the ledger needs not parse the rest (`ledgerFieldsIn`).
 */
export const usageRecord = z.object({
  v: z.literal(USAGE_RECORD_VERSION),
  generationId: z.string(),
  keyId: z.string(),
  /** Whether the call has a reservation, which this record settles. */
  reserved: z.boolean(),
  createdAtMs: z.number(),
  /** Of the endpoint that answered, or that was asked last; null: none was asked. */
  model: z.string().nullable(),
  provider: z.string().nullable(),
  /** `prompt` includes `cached` and `cacheWrite`, which includes `cacheWrite1h`; `completion` includes `reasoning`. */
  tokens: z.object({ prompt: count, completion: count, reasoning: count, cached: count, cacheWrite: count, cacheWrite1h: count.optional() }),
  /** What the caller pays, in billionths of a US dollar. */
  costNano: count,
  /** `client`: of a client's request; `actor`: of a turn or run. */
  kind: z.enum(['client', 'actor']),
  /** The API, a row of `shared/surfaces/surfaces.ts`. */
  surface: z.string(),
  endedAtMs: z.number(),
  streamed: z.boolean(),
  cancelled: z.boolean(),
  providerName: z.string().nullable(),
  /** The upstream's own id of the answer. */
  upstreamId: z.string().nullable(),
  /** Whether the tokens were counted here since the upstream reported none. */
  estimated: z.boolean(),
  /** Of the web, by the router or the upstream; absent: none. */
  searches: count.optional(),
  /** What made them: `native` for the upstream, else the name of the router's engine; absent: there were none, or it is not known. */
  searchEngine: z.string().optional(),
  /** Pages that the router's engine found and the model got; absent: the upstream searched, or none did. */
  searchResults: count.optional(),
  attempts: z.array(attempt),
  finishReason: z.string().nullable(),
  nativeFinishReason: z.string().nullable(),
  /** Of the request. */
  sessionId: z.string().nullable(),
  user: z.string().nullable(),
  metadata: z.record(z.string(), z.string()).nullable(),
  serviceTier: z.string().nullable(),
  /** Null: one endpoint was eligible and none excluded, so that nothing was decided. Absent: no decision was made, or by an older release. */
  decision: usageDecision.nullable().optional(),
});
export type UsageRecord = z.infer<typeof usageRecord>;

/** Of most records. */
const NOTHING_DECIDED = ',"decision":null';

/** The text of a record: what `JSON.stringify` makes of it, at a third of the cost, and in the order that `ledgerFieldsIn` reads. */
export function usageRecordText(record: UsageRecord): string {
  const { generationId, keyId, reserved, createdAtMs, model, provider, tokens, costNano, kind, surface, endedAtMs, streamed, cancelled } = record;
  const { providerName, upstreamId, estimated, attempts, finishReason, nativeFinishReason, sessionId, user, metadata, serviceTier, decision } = record;
  const { prompt, completion, reasoning, cached, cacheWrite, cacheWrite1h } = tokens;
  const written = cacheWrite1h === undefined ? cacheWrite : `${cacheWrite},"cacheWrite1h":${cacheWrite1h}`;
  const head = `"v":${USAGE_RECORD_VERSION},"generationId":${quoted(generationId)},"keyId":${quoted(keyId)},"reserved":${reserved},"createdAtMs":${createdAtMs}`;
  const served = `"model":${quoted(model)},"provider":${quoted(provider)}`;
  const counts = `{"prompt":${prompt},"completion":${completion},"reasoning":${reasoning},"cached":${cached},"cacheWrite":${written}}`;
  const call = `"kind":"${kind}","surface":${quoted(surface)},"endedAtMs":${endedAtMs},"streamed":${streamed},"cancelled":${cancelled}`;
  const answer = `"providerName":${quoted(providerName)},"upstreamId":${quoted(upstreamId)},"estimated":${estimated}${searchesText(record)}`;
  const end = `"finishReason":${quoted(finishReason)},"nativeFinishReason":${quoted(nativeFinishReason)}`;
  const caller = `"sessionId":${quoted(sessionId)},"user":${quoted(user)},"metadata":${JSON.stringify(metadata)},"serviceTier":${quoted(serviceTier)}`;
  const why = decision === undefined ? '' : decision === null ? NOTHING_DECIDED : `,"decision":${JSON.stringify(decision)}`;
  return `{${head},${served},"tokens":${counts},"costNano":${costNano},${call},${answer},"attempts":[${attempts.map(attemptText).join(',')}],${end},${caller}${why}}`;
}

function searchesText({ searches, searchEngine, searchResults }: UsageRecord): string {
  if (searches === undefined) return '';
  const engine = searchEngine === undefined ? '' : `,"searchEngine":${quoted(searchEngine)}`;
  return `,"searches":${searches}${engine}${searchResults === undefined ? '' : `,"searchResults":${searchResults}`}`;
}

function attemptText({ provider, providerName, model, status, code, startedAtMs, firstTokenMs, durationMs, costNano }: UsageAttempt): string {
  const asked = `"provider":${quoted(provider)},"providerName":${quoted(providerName)},"model":${quoted(model)},"status":${status},"code":${quoted(code)}`;
  return `{${asked},"startedAtMs":${startedAtMs},"firstTokenMs":${firstTokenMs},"durationMs":${durationMs},"costNano":${costNano}}`;
}

/** What the ledger has in columns. */
export type LedgerFields = Pick<UsageRecord, 'generationId' | 'keyId' | 'reserved' | 'createdAtMs' | 'model' | 'provider' | 'costNano'> & {
  tokens: Pick<UsageRecord['tokens'], 'prompt' | 'completion' | 'reasoning'>;
};

/** Integers that JavaScript has; no text with escapes. */
const [TEXT, COUNT] = ['"([^"\\\\]*)"', '(\\d{1,15})'];
const HEAD = new RegExp(
  `^\\{"v":${USAGE_RECORD_VERSION},"generationId":${TEXT},"keyId":${TEXT},"reserved":(true|false),"createdAtMs":${COUNT},"model":(?:null|${TEXT}),` +
    `"provider":(?:null|${TEXT}),"tokens":\\{"prompt":${COUNT},"completion":${COUNT},"reasoning":${COUNT},"cached":\\d{1,15},"cacheWrite":\\d{1,15}(?:,"cacheWrite1h":\\d{1,15})?\\},` +
    `"costNano":${COUNT},`,
);

/**
 * The ledger's fields of a record's text, whose rest is not checked: the database takes it if it is JSON. A tenth of what a parse costs.
 * @returns null for a record that is written otherwise, such as one of an earlier commit or with escapes: it has to be parsed
 */
export function ledgerFieldsIn(text: string): LedgerFields | null {
  const found = HEAD.exec(text);
  if (found === null) return null;
  const [, generationId = '', keyId = '', reserved, createdAtMs, model = null, provider = null, prompt, completion, reasoning, costNano] = found;
  return {
    generationId,
    keyId,
    reserved: reserved === 'true',
    createdAtMs: Number(createdAtMs),
    model,
    provider,
    tokens: { prompt: Number(prompt), completion: Number(completion), reasoning: Number(reasoning) },
    costNano: Number(costNano),
  };
}

import { z } from 'zod';
import { quoted } from './quoted.ts';
import { usageDecision } from './usage-decision.ts';

/** The version that this release reads and writes. */
export const USAGE_RECORD_VERSION = 1;

const count = z.number().int().min(0);

/** One try of a call at an endpoint. */
export interface UsageAttempt {
  /** Slug of the provider. */
  provider: string;
  providerName: string;
  model: string;
  /** HTTP status of its failure as clients get it; 200: it answered. */
  status: number;
  /** Code of the error; null: it answered. */
  code: string | null;
  startedAtMs: number;
  /** Until the first content; null: none came. */
  firstTokenMs: number | null;
  durationMs: number;
  /** What it cost the operator, in billionths of a US dollar, also where the caller pays nothing; null: the endpoint has no prices. */
  costNano: number | null;
}

/** As written. Names are absent where they are those of the record. */
const attempt = z.object({
  provider: z.string().optional(),
  providerName: z.string().optional(),
  model: z.string().optional(),
  status: z.number().int().default(200),
  code: z.string().nullable().default(null),
  startedAtMs: z.number(),
  firstTokenMs: z.number().nullable().default(null),
  durationMs: z.number(),
  costNano: count.nullable().default(null),
});

const [DEFAULT_KIND, DEFAULT_SURFACE] = ['client', 'chat-completions'] as const;
const text = z.string().nullable().default(null);

/** As written: by earlier releases with all fields, by this one without those that have their default (ADR 135). */
const written = z.object({
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
  kind: z.enum(['client', 'actor']).default(DEFAULT_KIND),
  /** The API, a row of `shared/surfaces/surfaces.ts`. */
  surface: z.string().default(DEFAULT_SURFACE),
  endedAtMs: z.number(),
  streamed: z.boolean().default(false),
  cancelled: z.boolean().default(false),
  providerName: text,
  /** The upstream's own id of the answer. */
  upstreamId: text,
  /** Whether the tokens were counted here since the upstream reported none. */
  estimated: z.boolean().default(false),
  /** Of the web, by the router or the upstream; absent: none. */
  searches: count.optional(),
  /** What made them: `native` for the upstream, else the name of the router's engine; absent: there were none, or it is not known. */
  searchEngine: z.string().optional(),
  /** Pages that the router's engine found and the model got; absent: the upstream searched, or none did. */
  searchResults: count.optional(),
  attempts: z.array(attempt).default([]),
  finishReason: text,
  nativeFinishReason: text,
  /** Of the request. */
  sessionId: text,
  user: text,
  metadata: z.record(z.string(), z.string()).nullable().default(null),
  serviceTier: text,
  /** Null: one endpoint was eligible and none excluded, so that nothing was decided. Absent: no decision was made, or by an older release. */
  decision: usageDecision.nullable().optional(),
});

/**
 * What one call used, on `usage.record`: exactly one per call that a worker has ended; the message id is the generation id. Without texts of messages. Writers
 * keep the order of the first fields, up to `costNano`: then the ledger needs not parse the rest (`ledgerFieldsIn`).
 */
export type UsageRecord = Omit<z.infer<typeof written>, 'attempts'> & { attempts: UsageAttempt[] };

/** Of either form. */
export const usageRecord = written.transform((record, context): UsageRecord => {
  const attempts = record.attempts.map((one) => ({
    ...one,
    provider: one.provider ?? record.provider,
    providerName: one.providerName ?? record.providerName,
    model: one.model ?? record.model,
  }));
  if (attempts.every(isNamed)) return { ...record, attempts };
  context.issues.push({ code: 'custom', message: 'an attempt names no endpoint, and neither does the record', input: record });
  return z.NEVER;
});

type Unnamed = Record<'provider' | 'providerName' | 'model', string | null>;

function isNamed<Attempt extends Unnamed>(attempt: Attempt): attempt is Attempt & Record<keyof Unnamed, string> {
  return attempt.provider !== null && attempt.providerName !== null && attempt.model !== null;
}

/** Of most records. */
const NOTHING_DECIDED = ',"decision":null';

/**
 * The text of a record, in the order that `ledgerFieldsIn` reads. Fields that have their default are left out, since the broker and the database pay for each
 * character (ADR 135).
 */
export function usageRecordText(record: UsageRecord): string {
  const { generationId, keyId, reserved, createdAtMs, model, provider, tokens, costNano, kind, surface, endedAtMs, streamed, cancelled } = record;
  const { providerName, upstreamId, estimated, attempts, finishReason, nativeFinishReason, sessionId, user, metadata, serviceTier, decision } = record;
  const { prompt, completion, reasoning, cached, cacheWrite, cacheWrite1h } = tokens;
  const call = `"v":${USAGE_RECORD_VERSION},"generationId":${quoted(generationId)},"keyId":${quoted(keyId)},"reserved":${reserved},"createdAtMs":${createdAtMs}`;
  const served = `"model":${quoted(model)},"provider":${quoted(provider)}`;
  // Ledgers of earlier releases parse the whole text for it, and know no defaults.
  if (call.includes('\\') || served.includes('\\')) return JSON.stringify(record);
  const kept = cacheWrite1h === undefined ? cacheWrite : `${cacheWrite},"cacheWrite1h":${cacheWrite1h}`;
  const counts = `{"prompt":${prompt},"completion":${completion},"reasoning":${reasoning},"cached":${cached},"cacheWrite":${kept}}`;
  let more = kind === DEFAULT_KIND ? '' : `,"kind":"${kind}"`;
  if (surface !== DEFAULT_SURFACE) more += `,"surface":${quoted(surface)}`;
  if (streamed) more += ',"streamed":true';
  if (cancelled) more += ',"cancelled":true';
  if (estimated) more += ',"estimated":true';
  if (record.searches !== undefined) more += searchesText(record);
  if (attempts.length > 0) more += `,"attempts":[${attempts.map((one) => attemptText(one, record)).join(',')}]`;
  more += field('providerName', providerName) + field('upstreamId', upstreamId);
  more += field('finishReason', finishReason) + field('nativeFinishReason', nativeFinishReason);
  more += field('sessionId', sessionId) + field('user', user) + field('serviceTier', serviceTier);
  if (metadata !== null) more += `,"metadata":${JSON.stringify(metadata)}`;
  if (decision !== undefined) more += decision === null ? NOTHING_DECIDED : `,"decision":${JSON.stringify(decision)}`;
  return `{${call},${served},"tokens":${counts},"costNano":${costNano},"endedAtMs":${endedAtMs}${more}}`;
}

function field(name: string, value: string | null): string {
  return value === null ? '' : `,"${name}":${quoted(value)}`;
}

function searchesText({ searches, searchEngine, searchResults }: UsageRecord): string {
  const engine = searchEngine === undefined ? '' : `,"searchEngine":${quoted(searchEngine)}`;
  return `,"searches":${searches}${engine}${searchResults === undefined ? '' : `,"searchResults":${searchResults}`}`;
}

function attemptText(attempt: UsageAttempt, record: UsageRecord): string {
  const { provider, providerName, model, status, code, startedAtMs, firstTokenMs, durationMs, costNano } = attempt;
  let more = provider === record.provider ? '' : field('provider', provider);
  if (providerName !== record.providerName) more += field('providerName', providerName);
  if (model !== record.model) more += field('model', model);
  if (status !== 200) more += `,"status":${status}`;
  if (code !== null) more += field('code', code);
  if (firstTokenMs !== null) more += `,"firstTokenMs":${firstTokenMs}`;
  if (costNano !== null) more += `,"costNano":${costNano}`;
  return `{"startedAtMs":${startedAtMs},"durationMs":${durationMs}${more}}`;
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

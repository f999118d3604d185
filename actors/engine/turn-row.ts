import { z } from 'zod';
import { foundDocument } from '#bus/messages/found-document.ts';
import { agentState } from './agent-state.ts';
import { checkAnswer, checkReference } from './composition/check-reply.ts';
import { saidText } from './likeness/said-text.ts';
import { matchAnswer } from './policies/match-answer.ts';
import { matchBatch } from './policies/match-batch.ts';
import { resolution } from './relationships/resolution.ts';
import { routineAnswer, routineCall } from './routines/routine-calls.ts';
import { inferAnswer } from './tools/infer-answer.ts';
import { parameterQuestion } from './tools/parameter-questions.ts';
import { stagedCall } from './tools/tool-batch.ts';
import { inferReference } from './tools/tool-rounds.ts';

/** What every answer of a model is stored with. */
const call = {
  /** Of the request within its turn. */
  key: z.string(),
  model: z.string(),
  /** From its opening to its result, both by the owners' clocks. */
  ms: z.number(),
  tokens: z.number(),
};

/**
 * What a turn stores of its way to the reply: results, and decisions drawn from them. Never a prompt or a text of a document: those are named by id.
 * Rows outlive releases, so fields are only added, as optional ones.
 */
const turnRow = z.discriminatedUnion('kind', [
  /** The turn's first row, again after a message has joined it: earlier rows no longer count. */
  z.object({
    kind: z.literal('began'),
    state: agentState,
    /** The routine that the message is most like; absent: it is like none. */
    likeliest: z.string().optional(),
    /** What is compared by vectors before anything is decided; absent: shared words decide. */
    compares: z.array(saidText).readonly().optional(),
    /** The set of evaluations with which the turn goes on; absent: the documents' own texts. */
    evaluations: z.string().optional(),
    /** By server: hash of its tool list, the same for the whole turn. Absent: nothing names a tool. */
    lists: z.record(z.string(), z.string()).optional(),
  }),
  /** By vectors: what the texts of `began.compares` are most like. */
  z.object({
    kind: z.literal('likeness'),
    ...call,
    /** Null: no answer of the model named it. */
    model: z.string().nullable(),
    /** The routine that the message is most like; null: it is like none. Absent: it was not compared. */
    likeliest: z.string().nullable().optional(),
    /** Places in the glossaries of the terms nearest to the talk. Absent: they were not compared. */
    terms: z.array(z.number()).readonly().optional(),
    /** Why shared words decide; null: vectors did. */
    failure: z.enum(['malformed', 'unavailable']).nullable(),
  }),
  z.object({ kind: z.literal('match'), ...call, reference: matchBatch, answer: matchAnswer }),
  /** Of a routine: its next step, or whether and where it goes back. */
  z.object({ kind: z.literal('routine'), ...call, reference: routineCall, answer: routineAnswer }),
  z.object({ kind: z.literal('infer-tools'), ...call, reference: inferReference, answer: inferAnswer }),
  z.object({ kind: z.literal('tool'), key: z.string(), ms: z.number(), call: stagedCall }),
  /** The query that a model has made for a search by meaning; null: it made none, and the customer's newest message is searched for. */
  z.object({
    kind: z.literal('query'),
    ...call,
    query: z.string().nullable(),
    /** Null: no answer of the model named it. */
    model: z.string().nullable(),
    /** Why there is none; null: there is one. */
    failure: z.enum(['malformed', 'unavailable']).nullable(),
  }),
  /** The vector of what is searched for: 32-bit floats, little endian, in base64. */
  z.object({ kind: z.literal('embedding'), ...call, vector: z.string() }),
  /** What was retrieved for the reply. */
  z.object({
    kind: z.literal('search'),
    key: z.string(),
    ms: z.number(),
    documents: z.array(foundDocument),
    /** Why there are none; null: nothing was found, or there are some. */
    failure: z.string().nullable(),
  }),
  /** What the reply is composed from. */
  z.object({
    kind: z.literal('resolved'),
    policies: z.array(z.object({ id: z.string(), rationale: z.string().nullable() })),
    /** What to ask the customer. */
    clarifications: z.array(z.object({ id: z.string(), action: z.string(), rationale: z.string().nullable() })),
    /** What tools lack; absent: nothing. */
    questions: z.array(parameterQuestion).optional(),
    /** The current ones of active routines. */
    steps: z.array(z.object({ routineId: z.string(), stepId: z.string() })).default([]),
    /** Of routines that were ever considered: to be remembered. */
    paths: agentState.shape.paths.default({}),
    /** Policies whose action is looked for in the reply. */
    tracked: z.array(z.string()).default([]),
    /** What relationships have added or left out. */
    resolutions: z.array(resolution).default([]),
    /** Policies for which the reply is checked before it is sent; absent: none. */
    critical: z.array(z.string()).optional(),
    /** Tools that policies in force and current steps name and no stored list holds; absent: none. */
    unlisted: z.array(z.string()).optional(),
    /** What had the turn answer before it had matched all: `max_engine_iterations`, or its budget; absent: nothing. */
    cutShort: z.enum(['iterations', 'budget']).optional(),
  }),
  /** An answer that can't be read. `asked`: what for, `applied` or the kind of a call; the key is that of the request. */
  z.object({ kind: z.literal('malformed'), ...call, ms: z.number().nullable(), asked: z.string(), reason: z.string() }),
  /** After the reply the policies that it has applied are looked for: what a repeated question needs. */
  z.object({ kind: z.literal('applied-check'), bundleHash: z.string(), traceparent: z.string().nullable(), upToOffset: z.number() }),
  /** A reply that is checked before it is sent. */
  z.object({ kind: z.literal('reply'), callId: z.string(), text: z.string(), model: z.string(), provider: z.string(), tokens: z.number() }),
  z.object({ kind: z.literal('check-reply'), ...call, reference: checkReference, answer: checkAnswer }),
  /** The reply is sent without its check. */
  z.object({ kind: z.literal('unchecked'), reason: z.enum(['over_budget', 'unavailable', 'malformed', 'deadline']) }),
]);
export type TurnRow = z.infer<typeof turnRow>;
export type RowOf<Kind extends TurnRow['kind']> = Extract<TurnRow, { kind: Kind }>;

/** By body, null for one that is not known: rows never change, and the cached ones of a turn are read for each of its calls. */
const known = new WeakMap<object, TurnRow | null>();

/** Those of other releases that this one does not know are left out. */
export function readTurnRows(bodies: readonly unknown[]): TurnRow[] {
  return bodies.flatMap((body) => (typeof body === 'object' && body !== null ? (readTurnRow(body) ?? []) : []));
}

/** A row that this process has made needs no check when it is read again. */
export function ownTurnRow(row: TurnRow): TurnRow {
  known.set(row, row);
  return row;
}

function readTurnRow(body: object): TurnRow | null {
  const found = known.get(body);
  if (found !== undefined) return found;
  const read = turnRow.safeParse(body).data ?? null;
  known.set(body, read);
  return read;
}

/** The rows that count: from the newest beginning on. */
export function currentRows(rows: readonly TurnRow[]): { began: RowOf<'began'>; rows: readonly TurnRow[] } {
  const at = rows.findLastIndex(({ kind }) => kind === 'began');
  const began = rows[at];
  if (began?.kind !== 'began') throw new TypeError('a turn without its first row');
  return { began, rows: rows.slice(at + 1) };
}

import { z } from 'zod';
import { wholeNumber } from './whole-number.ts';

const time = z.iso.datetime();
const rationale = z.string().nullable();

/** A turn of a session, and what it has decided. Lists have these; `turnRecord` says why. */
export const turnSummary = z.object({
  trace_id: z.string(),
  /** Of its first event, the status `acknowledged`. */
  begin_offset: z.int().min(0),
  /** Of its last event, the status `ready`; null: it goes on. */
  end_offset: z.int().min(0).nullable(),
  created_at: time,
  ended_at: time.nullable(),
  /** `silent`: it has ended by itself without a reply. */
  outcome: z.enum(['in_progress', 'replied', 'failed', 'cancelled', 'silent']),
  /** As the log has it; null: it has not failed. */
  error: z.string().nullable(),
  reply: z.object({ event_id: z.string(), offset: z.int().min(0), model: z.string().nullable(), provider: z.string().nullable() }).nullable(),
  /** Those that were in force for the reply. */
  policies: z.array(z.object({ id: z.string(), rationale })),
  /** The current steps of routines. */
  steps: z.array(z.object({ routine_id: z.string(), step_id: z.string() })),
  /** In the order of the calls. */
  tools: z.array(z.object({ tool_id: z.string(), failed: z.boolean() })),
});
export type TurnSummary = z.infer<typeof turnSummary>;

export const turnRecord = turnSummary.extend({
  /** What models have said of each condition, and whether it holds. `batch`: of one model call. */
  evidence: z.array(z.object({ id: z.string(), applies: z.boolean(), rationale, class: z.string(), batch: z.string(), model: z.string(), ms: z.number() })),
  /** What relationships have added (`entailed`) or left out, and by what. */
  resolutions: z.array(
    z.object({
      entity: z.string(),
      outcome: z.enum(['none', 'entailed', 'deprioritized', 'unmet_dependency']),
      relationship: z.string().nullable(),
      counterparts: z.array(z.string()),
    }),
  ),
  /** Questions about routines: the next step, whether the customer goes back, and where to. */
  routines: z.array(
    z.object({
      routine_id: z.string(),
      question: z.enum(['next-step', 'backtrack', 'select-node']),
      answer: z.record(z.string(), z.unknown()),
      model: z.string(),
      ms: z.number(),
    }),
  ),
  /** What the customer is asked, since several things may be meant. */
  clarifications: z.array(z.string()),
  /** What the customer is asked, since a tool lacks it. */
  questions: z.array(z.object({ tool_id: z.string(), parameter: z.string(), problem: z.string() })),
  /** For each tool that could be called: whether it is, and why not. */
  inferences: z.array(z.object({ tool_id: z.string(), outcome: z.enum(['needs_to_run', 'data_already_in_context', 'cannot_run']), rationale })),
  /** That policies in force and current steps name, and no stored list of their servers has: they could not be called. */
  unlisted_tools: z.array(z.string()),
  /** What had the turn answer before it had matched and called all that it wanted to: `iterations` (`max_engine_iterations`), or its budget of model calls. */
  cut_short: z.enum(['iterations', 'budget']).nullable(),
  tools: z.array(z.object({ tool_id: z.string(), failed: z.boolean(), arguments: z.record(z.string(), z.unknown()), ms: z.number() })),
  /** What the turn's message was compared with. Null: it is like no routine by its words, and no vectors were to be compared. */
  likeness: z
    .object({
      /** The routine that it is most like, whose policies are judged first if none is followed. Null: it is like none by its words. */
      routine: z.object({ id: z.string().nullable(), by: z.enum(['vectors', 'words']) }).nullable(),
      /** Terms of glossaries that vectors have chosen for the prompts. Null: shared words choose, of more than 50. */
      terms: z.int().min(0).nullable(),
      /** Why there were no vectors to compare; null: there were, or none were asked for. */
      failure: z.string().nullable(),
      model: z.string().nullable(),
      /** Until the vectors were there; null: none were asked for. */
      ms: z.number().nullable(),
    })
    .nullable(),
  /** Null: nothing was searched for. */
  retrieval: z
    .object({
      documents: z.int().min(0),
      /** Null: the search did not fail. */
      failure: z.string().nullable(),
      ms: z.number(),
      /** Of a model, for a search by meaning; null: none was asked for. `text`: null where it failed, and the customer's message was searched for. */
      query: z.object({ text: z.string().nullable(), failure: z.string().nullable(), model: z.string().nullable(), ms: z.number() }).nullable(),
    })
    .nullable(),
  /** Of the reply, for policies of high criticality; null: there are none. `reason`: why it was sent unchecked. */
  check: z
    .object({
      outcome: z.enum(['followed', 'missed', 'unchecked']),
      reason: z.string().nullable(),
      policies: z.array(z.object({ id: z.string(), followed: z.boolean(), rationale })),
    })
    .nullable(),
  /** Messages since the turn before began that moderation reads, or that a caller has marked: those that are not `passed` are in no prompt. */
  moderation: z.array(
    z.object({
      event_id: z.string(),
      offset: z.int().min(0),
      /** Null: the caller's own mark. */
      mode: z.enum(['auto', 'paranoid']).nullable(),
      status: z.enum(['pending', 'passed', 'flagged', 'unavailable']),
      tags: z.array(z.string()),
    }),
  ),
  /** Answers of models that could not be read, with the reason. Each is asked for once more. */
  faults: z.array(
    z.object({
      /** Of the call: `applied`, or the question. */
      kind: z.string(),
      /** Of the question within its turn. */
      batch: z.string(),
      reason: z.string(),
      model: z.string(),
      /** Null: it is not known. */
      ms: z.number().nullable(),
    }),
  ),
  /** Model calls, in the order of their opening; empty: they are no longer stored. */
  calls: z.array(
    z.object({
      id: z.string(),
      /** `compose`, `preamble`, `applied`, or the question. */
      kind: z.string(),
      template: z.string().nullable(),
      opened_at: time,
      /** The rest is null while the usage record is not stored, or where the router has another database. */
      model: z.string().nullable(),
      provider: z.string().nullable(),
      prompt_tokens: z.int().min(0).nullable(),
      completion_tokens: z.int().min(0).nullable(),
      /** US dollars. */
      cost: z.number().nullable(),
      ms: z.number().nullable(),
    }),
  ),
});
export type TurnRecord = z.infer<typeof turnRecord>;

/** Query of GET /sessions/{id}/turns. */
export const listTurnsQuery = z.object({
  /** Entries of a page, 1 to 100. Absent: 20. */
  limit: wholeNumber.pipe(z.number().min(1).max(100)).default(20),
  /** `next_cursor` of the page before. */
  cursor: wholeNumber.pipe(z.number().min(0)).optional(),
});

/** Query of GET /sessions/{id}/turns/{trace_id}. */
export const oneTurnQuery = z.object({
  /** `begin_offset` of the turn, where messages that came in one trace began several. Absent: the first of them. */
  begin_offset: wholeNumber.pipe(z.number().min(0)).optional(),
});

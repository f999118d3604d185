import { z } from 'zod';
import { type RunStep, runCallOutcome } from '#shared/contracts/agent/run.ts';
import type { NamedStatement, Queryable } from '#shared/storage/database.ts';

const KINDS = { 'run-call': 'model_call', 'tool-call': 'tool_call', 'tool-list': 'tool_list' } as const;

const stepKind = z.enum(['run-call', 'tool-call', 'tool-list']);
const toolInputs = z.object({ toolId: z.string() });

/** A run's steps: effects of its owner, with outcomes in their own rows. */
export class RunStepRows {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /**
   * In the order of creation, after number `after`. Kinds of a newer release are left out: a page may have fewer than `limit`.
   * @returns null: no such run; `next` is the number of the last row, null on the last page
   */
  async list(runId: string, after: number, limit: number): Promise<{ steps: RunStep[]; next: number | null } | null> {
    // A run's effects are numbered from 1, so a page is selected by ids.
    const ids = Array.from({ length: limit + 1 }, (_, index) => `${runId}-${after + 1 + index}`);
    const { rows } = await this.#database.query<StepRow>(SELECT_STEPS, [runId, ids]);
    if (rows.length === 0) return null;
    const numbered = rows.flatMap((row) => (row.id === null ? [] : [{ step: Number(row.id.slice(runId.length + 1)), row }]));
    const page = numbered.sort((left, right) => left.step - right.step).slice(0, limit);
    return { steps: page.flatMap(({ step, row }) => stepOf(step, row)), next: numbered.length > limit ? (page.at(-1)?.step ?? null) : null };
  }
}

interface StepRow {
  /** This and all below: null in the only row of a run without steps. */
  id: string | null;
  kind: string;
  state: string;
  inputs: unknown;
  created_at: Date;
  outcome: unknown;
  ended_at: Date | null;
}

function stepOf(step: number, { kind, state, inputs, created_at: startedAt, outcome: stored, ended_at: endedAt }: StepRow): RunStep[] {
  const known = stepKind.safeParse(kind).data;
  if (known === undefined) return [];
  const outcome = stored === null ? null : (runCallOutcome.safeParse(stored).data ?? null);
  return [
    {
      step,
      kind: KINDS[known],
      tool_id: known === 'tool-call' ? (toolInputs.safeParse(inputs).data?.toolId ?? null) : null,
      outcome: outcome?.type ?? (state === 'open' ? null : 'unknown'),
      reason: outcome?.reason ?? null,
      model: outcome?.model ?? null,
      provider: outcome?.provider ?? null,
      usage: outcome?.usage ?? null,
      started_at: startedAt.toISOString(),
      ended_at: endedAt?.toISOString() ?? null,
      ms: endedAt === null ? null : endedAt.getTime() - startedAt.getTime(),
    },
  ];
}

const SELECT_STEPS: NamedStatement = {
  name: 'agent-gateway-run-steps',
  text: `select e.id, e.kind, e.state, e.inputs, e.created_at, c.outcome, c.ended_at
    from runs r left join effects e on e.id = any ($2::text[]) and e.turn_id = r.id
    left join run_calls c on c.run_id = r.id and c.effect_id = e.id
    where r.id = $1`,
};

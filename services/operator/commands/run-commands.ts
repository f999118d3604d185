import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Run } from '#client/api.ts';
import type { TargetOptions } from '../targets.ts';
import { inTheConsole, withAgent } from './agent-of.ts';
import { type CommandDeps, printable, wholeNumber } from './dependencies.ts';
import { tableLines } from './table-lines.ts';
import { withTarget } from './target-options.ts';

type Json = TargetOptions & { json?: boolean };
type TriggerOptions = Json & { callbackUrl: string; input: Record<string, unknown>; session?: string; wait?: boolean };
type ListOptions = Json & { routine?: string; status?: Run['status']; limit: number };

const STATUSES = ['accepted', 'running', 'succeeded', 'failed'] as const satisfies readonly Run['status'][];
const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;
const knownRuns = () => '`switchyard runs list` has the ids of those that exist';
const HEAD = ['RUN', 'ROUTINE', 'STATUS', 'CREATED AT'];

/** Runs of autonomous routines, over the agent server's API. */
export function addRunCommands(program: Command, { environment, print, progress, columns }: CommandDeps): void {
  withTarget(program.command('trigger'))
    .description('starts a run of an autonomous routine, once, however often the network fails')
    .argument('<routine>', 'its id')
    .requiredOption('--callback-url <address>', 'the outcome is posted there')
    .option('--input <json>', 'an object, or @ and the name of a file that has one', inputObject, {})
    .option('--session <id>', 'runs in this session; default: in one of its own')
    .option('--wait', 'until the run has ended, and prints its output; ends with 1 when the run has failed')
    .option('--json', 'the run as JSON')
    .action(async (routineId: string, { callbackUrl, input, session, wait = false, json = false, ...options }: TriggerOptions) => {
      const { triggerRun } = await import('../runs/trigger-run.ts');
      const trigger = { routineId, callbackUrl, input, sessionId: session ?? null };
      await withAgent(options, environment, inTheConsole, (client) => triggerRun(trigger, { wait, json }, { client, print, progress }));
    });

  const runs = program.command('runs').description('runs of autonomous routines');
  withTarget(runs.command('list'))
    .description('lists runs, newest first')
    .option('--routine <id>', 'of this routine')
    .addOption(new Option('--status <status>', 'with this status').choices(STATUSES))
    .option('--limit <count>', `most runs to list, up to ${MAX_LIMIT}`, wholeNumber(1, MAX_LIMIT), DEFAULT_LIMIT)
    .option('--json', 'as a JSON array')
    .action(async ({ routine, status, limit, json = false, ...options }: ListOptions) => {
      const { listRuns } = await import('../runs/list-runs.ts');
      const filter = { ...(routine !== undefined && { routine_id: routine }), ...(status !== undefined && { status }) };
      const found = await withAgent(options, environment, null, (client) => listRuns(client, filter, limit));
      if (json) return print(JSON.stringify(found, null, 2));
      for (const line of found.length === 0 ? ['There are no runs.'] : tableLines(HEAD, found.map(rowOf), columns)) print(line);
    });

  withTarget(runs.command('show'))
    .description('prints a run with its steps and the state of its callback')
    .argument('<run>', 'its id')
    .option('--json', 'as JSON')
    .action(async (runId: string, { json = false, ...options }: Json) => {
      const { showRun } = await import('../runs/show-run.ts');
      await withAgent(options, environment, knownRuns, (client) => showRun(runId, { json }, { client, print }));
    });

  withTarget(runs.command('cancel'))
    .description('fails a run that has not ended; its callback says so')
    .argument('<run>', 'its id')
    .option('--json', 'the run as JSON')
    .action(async (runId: string, { json = false, ...options }: Json) => {
      const request = { path: { run_id: runId } };
      const run = await withAgent(options, environment, knownRuns, (client) => client.request('POST', '/runs/{run_id}/cancel', request));
      print(json ? JSON.stringify(run, null, 2) : `${run.run_id} is ${run.status}.`);
    });
}

function rowOf({ run_id: id, routine_id: routine, status, created_at: createdAt }: Run): string[] {
  return [id, printable(routine), status, createdAt];
}

/** @throws InvalidArgumentError */
function inputObject(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text.startsWith('@') ? readFileSync(text.slice(1), 'utf8') : text);
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? `${error.message}.` : '');
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new InvalidArgumentError('It must be a JSON object, such as {"claim_id":"c-17"}.');
}

import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventually } from '../../helpers/eventually.ts';
import { readStream } from '../../helpers/read-stream.ts';
import { plannedCall, requestFor, type ScriptedDeployment } from '../../helpers/scripted-deployment.ts';
import type { Plan, Step } from '../../upstreams/scripted-upstream.ts';

/** The expected end of a call. `status` is that of the response, or of the error chunk and of the error inside of a whole answer. */
type Ending =
  | { kind: 'whole'; text: string }
  /** Before anything was streamed. */
  | { kind: 'refused'; status: number; retryAfter?: string }
  /** After a part of the answer. */
  | { kind: 'broken'; text: string; status: number };

interface Row {
  fault: string;
  model?: string;
  steps: Step[];
  options?: Pick<Plan, 'newline' | 'pieceBytes'>;
  ending: Ending;
}

const PIECES = ['Grüße ', 'aus ', '日本 ', '👋🏽 ', 'und tschüs'];
const TEXT = PIECES.join('');
const said: Step[] = PIECES.map((say) => ({ say }));
const ended: Step[] = ['finish', 'usage', 'done', 'end'];
const whole: Ending = { kind: 'whole', text: TEXT };
const brokenAfter = (pieces: number, status = 502): Ending => ({ kind: 'broken', text: PIECES.slice(0, pieces).join(''), status });
const errorIn200 = (code: number): Step => ({ raw: `data: {"error":{"message":"the engine broke","type":"server_error","code":${code}}}\n\n` });
const HALF_A_LINE: Step = { raw: 'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"conte\n\n' };
const TEN_MB = 10_000_000;

const rows: Row[] = [
  { fault: 'refuses the connection', model: 'closed', steps: [], ending: { kind: 'refused', status: 502 } },
  { fault: 'sends no headers', steps: ['hold'], ending: { kind: 'refused', status: 502 } },
  { fault: 'sends headers and nothing else', steps: ['headers', 'hold'], ending: { kind: 'refused', status: 502 } },
  {
    fault: 'answers 429 with Retry-After',
    steps: [{ refuse: 429, headers: { 'retry-after': '7' } }],
    ending: { kind: 'refused', status: 429, retryAfter: '7' },
  },
  { fault: 'answers 500', steps: [{ refuse: 500 }], ending: { kind: 'refused', status: 502 } },
  { fault: 'answers 529', steps: [{ refuse: 529 }], ending: { kind: 'refused', status: 503 } },
  { fault: 'sends an error inside of a 200 first', steps: [errorIn200(500), 'end'], ending: { kind: 'refused', status: 502 } },
  { fault: 'sends its limit as an error inside of a 200 first', steps: [errorIn200(429), 'end'], ending: { kind: 'refused', status: 429 } },
  { fault: 'sends a malformed line first', steps: [HALF_A_LINE, 'end'], ending: { kind: 'refused', status: 502 } },
  { fault: 'ends without a word', steps: ['headers', 'end'], ending: { kind: 'refused', status: 502 } },
  { fault: 'breaks the connection before the first token', steps: ['headers', 'cut'], ending: { kind: 'refused', status: 502 } },
  { fault: 'breaks the connection after 3 tokens', steps: [...said.slice(0, 3), 'cut'], ending: brokenAfter(3) },
  { fault: 'ends in order after 3 tokens, without a finish', steps: [...said.slice(0, 3), 'end'], ending: brokenAfter(3) },
  { fault: 'says [DONE] after 3 tokens, without a finish', steps: [...said.slice(0, 3), 'done', 'end'], ending: brokenAfter(3) },
  { fault: 'is silent after 3 tokens', steps: [...said.slice(0, 3), 'hold'], ending: brokenAfter(3) },
  { fault: 'sends an error after 3 tokens', steps: [...said.slice(0, 3), errorIn200(500), 'end'], ending: brokenAfter(3) },
  { fault: 'sends a malformed line after 3 tokens', steps: [...said.slice(0, 3), HALF_A_LINE, ...said.slice(3), ...ended], ending: brokenAfter(3) },
  { fault: 'sends a line of 20 MB after 3 tokens', steps: [...said.slice(0, 3), { letters: 2 * TEN_MB }, ...ended], ending: brokenAfter(3) },
  { fault: 'says twice that it has finished', steps: [...said, 'finish', ...ended], ending: whole },
  { fault: 'sends no usage', steps: [...said, 'finish', 'done', 'end'], ending: whole },
  { fault: 'sends no end mark', steps: [...said, 'finish', 'usage', 'end'], ending: whole },
  { fault: 'leaves the connection open behind the end mark', steps: [...said, 'finish', 'usage', 'done', 'hold'], ending: whole },
  { fault: 'ends lines with CRLF', steps: [...said, ...ended], options: { newline: '\r\n' }, ending: whole },
  { fault: 'sends byte by byte, in the middle of characters', steps: [...said, ...ended], options: { pieceBytes: 1 }, ending: whole },
  { fault: 'cuts characters between two writes', steps: [...said, ...ended], options: { pieceBytes: 7 }, ending: whole },
  {
    fault: 'sends comments and empty lines between',
    steps: [{ raw: ': ping\n\n\n' }, ...said.flatMap((one): Step[] => [{ raw: ': ping\n\n' }, one]), ...ended],
    ending: whole,
  },
  { fault: 'sends a line of 10 MB', steps: [...said, { letters: TEN_MB }, ...ended], ending: { kind: 'whole', text: `${TEXT}${'x'.repeat(TEN_MB)}` } },
];

const errorBody = z.looseObject({ error: z.looseObject({ code: z.number(), message: z.string() }) });
const completion = z.looseObject({
  choices: z.tuple([
    z.looseObject({
      message: z.looseObject({ content: z.string().nullable() }),
      finish_reason: z.string(),
      error: z.looseObject({ code: z.number() }).optional(),
    }),
  ]),
  usage: z.looseObject({ total_tokens: z.number() }),
});

interface Answer {
  status: number;
  headers: Record<string, unknown>;
  text: string;
  /** False: the connection broke. */
  isWhole: boolean;
  /** Whether the worker closed the requests that the upstream never ends. */
  leftAlone: boolean[];
}

/** The outcome of a call in the form of its row. Long texts are shortened, so that a failure prints a line. */
interface Outcome {
  kind: string;
  status?: number;
  retryAfter?: string;
  text?: string;
}

function shorten<Given extends Outcome | Ending>(outcome: Given): Given {
  return 'text' in outcome && outcome.text !== undefined && outcome.text.length > 1_000
    ? { ...outcome, text: `${outcome.text.slice(0, 100)} … ${outcome.text.length} characters` }
    : outcome;
}

function refused({ status, headers, text }: Answer): Outcome {
  expect(errorBody.parse(JSON.parse(text)).error.code).toBe(status);
  return { kind: 'refused', status, ...(typeof headers['retry-after'] === 'string' ? { retryAfter: headers['retry-after'] } : {}) };
}

function streamed(answer: Answer): Outcome {
  if (answer.status !== 200) return refused(answer);
  const { text, ends, behindEnd, finishes, usages } = readStream(answer.text);
  const [end] = ends;
  // Exactly one of the two, last, and the connection ends in order: nothing is cut off, and a failure never looks like a regular end.
  expect({ ends: ends.length, behindEnd, isWhole: answer.isWhole }).toEqual({ ends: 1, behindEnd: 0, isWhole: true });
  expect({ finishes, usages }).toEqual(end === 'done' ? { finishes: ['stop'], usages: 1 } : { finishes: ['error'], usages: 0 });
  return end === 'done' || end === undefined ? { kind: 'whole', text } : { kind: 'broken', text, status: end };
}

function outcomeOfWhole(answer: Answer): Outcome {
  expect(answer.isWhole).toBe(true);
  if (answer.status !== 200) return refused(answer);
  const [{ message, finish_reason: finish, error }] = completion.parse(JSON.parse(answer.text)).choices;
  const text = message.content ?? '';
  expect(finish).toBe(error === undefined ? 'stop' : 'error');
  return error === undefined ? { kind: 'whole', text } : { kind: 'broken', text, status: error.code };
}

/** @param deploymentOf the deployment, once it runs */
export function faultCases(deploymentOf: () => ScriptedDeployment): void {
  describe('whatever its upstream does', () => {
    let answers: Map<Row, { stream: Answer; body: Answer }>;

    // Concurrently, since most of the time is spent on upstreams that are silent; but long lines hold a busy worker, which then loses its other calls.
    beforeAll(async () => {
      const deployment = deploymentOf();
      const askBoth = async (row: Row) => {
        const [stream, body] = await Promise.all([ask(deployment, row, true), ask(deployment, row, false)]);
        return [row, { stream, body }] as const;
      };
      const isLong = ({ steps }: Row) => steps.some((step) => typeof step === 'object' && 'letters' in step);
      const asked = await Promise.all(rows.filter((row) => !isLong(row)).map(askBoth));
      for (const row of rows.filter(isLong)) asked.push(await askBoth(row));
      answers = new Map(asked);
    });

    const answersTo = (row: Row) => {
      const answer = answers.get(row);
      if (answer === undefined) throw new Error('it was not asked');
      return answer;
    };

    it.each(rows)('DESIGN 7: a stream ends in exactly one of [DONE] and the error chunk when the upstream $fault', (row) => {
      expect(shorten(streamed(answersTo(row).stream))).toEqual(shorten(row.ending));
    });

    it.each(rows)('DESIGN 7: a whole answer says how the call ended when the upstream $fault', (row) => {
      expect(shorten(outcomeOfWhole(answersTo(row).body))).toEqual(shorten(row.ending));
    });

    // No other limit of the deployment ends a call before the timeout of this file's beforeAll.
    it('DESIGN 7: no call outlives the silence of its upstream', () => {
      const held = rows.filter(({ steps }) => steps.includes('hold'));
      const leftAlone = held.map((row) => [...answersTo(row).stream.leftAlone, ...answersTo(row).body.leftAlone]);

      expect(leftAlone).toEqual(held.map(() => [true, true]));
    });
  });
}

async function ask(deployment: ScriptedDeployment, { model = 'first', steps, options }: Row, stream: boolean): Promise<Answer> {
  const plan = plannedCall({ first: steps }, options);
  const answer = await deployment.post(requestFor(plan, model, stream)).answer;
  const isWhole = await answer.ended;
  const held = steps.includes('hold') ? deployment.upstream.calls(plan.name) : [];
  // The kernel reports the closed connection to the upstream a moment later.
  await eventually(() => held.every(({ leftAtMs }) => leftAtMs !== null)).catch(() => {});
  const leftAlone = held.map(({ leftAtMs }) => leftAtMs !== null);
  deployment.upstream.release(plan.name);
  const { status, headers, text } = answer;
  return { status, headers, text, isWhole, leftAlone };
}

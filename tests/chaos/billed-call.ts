import { z } from 'zod';
import { post } from '../../services/router-gateway/test-support/http-client.ts';
import { dataUrlOf, textPdf } from '../../services/router-worker/pipeline/test-support/pdf-files.ts';
import { nanoOfUsd } from '../../shared/credit/nano-usd.ts';
import { plannedCall, requestFor } from '../helpers/scripted-deployment.ts';
import type { Step } from '../upstreams/scripted-upstream.ts';
import { type BillingEnvironment, HEDGED_MODEL, type MadeKey } from './billing-environment.ts';
import { headersOf, inTime, isDying, readToEnd, type StreamedCall } from './client-stream.ts';

/**
 * What the provider does: counts its answer, does not, breaks off behind content, refuses, or answers for ten seconds. Of a model whose calls are hedged: answers at once, or is so late
 * that its other endpoint is asked, too.
 */
export type Script = 'counted' | 'uncounted' | 'broken' | 'refused' | 'long' | 'prompt' | 'late';

export interface BilledCall {
  key: MadeKey;
  script: Script;
  isStream: boolean;
  /** It has a PDF, which its worker reads. */
  hasFile?: boolean;
  /** Queued rather than dispatched. */
  isDetached?: boolean;
}

/** How a call ended for its client. */
export interface Outcome extends BilledCall {
  /** Of the plan; `user` in the ledger. */
  name: string;
  /** Null: the connection was cut before a response. */
  status: number | null;
  /** `completed`; the status of an error behind content; null: refused or cut. */
  end: 'completed' | number | null;
  /** Null: no response has begun. */
  generationId: string | null;
  /** Content that the client has. */
  text: string;
  /** What the response says that the call has cost; null: it does not say it. */
  costNano: number | null;
  /** Why this is a fault; null: it is allowed. */
  fault: string | null;
}

const TIMES = 6;
const EVERY_MS = 40;
const LONG_TIMES = 200;
const LONG_EVERY_MS = 50;
const SAY: Step = { say: 'word', times: TIMES, everyMs: EVERY_MS };
const SERVER_ERROR = 500;
const COUNTED: Step[] = [SAY, 'finish', 'usage', 'done', 'end'];
/** Longer than a hedge waits, and shorter than the time for the first token: without a hedge it answers. */
const LATE: Step = { pauseMs: 10_000 };
/** So long both are open. */
const SHORTLY: Step = { pauseMs: 400 };
/** By model and provider. */
const scripts: Record<Script, { model: string; steps: Record<string, Step[]> }> = {
  counted: { model: 'first', steps: { first: COUNTED } },
  uncounted: { model: 'first', steps: { first: [SAY, 'finish', 'done', 'end'] } },
  broken: { model: 'first', steps: { first: [SAY, 'cut'] } },
  refused: { model: 'first', steps: { first: [{ refuse: SERVER_ERROR }] } },
  long: { model: 'first', steps: { first: [{ say: 'word', times: LONG_TIMES, everyMs: LONG_EVERY_MS }, 'finish', 'usage', 'done', 'end'] } },
  prompt: { model: HEDGED_MODEL, steps: { east: COUNTED, west: COUNTED } },
  late: { model: HEDGED_MODEL, steps: { east: [LATE, ...COUNTED], west: [SHORTLY, ...COUNTED] } },
};
const PDF = { type: 'file', file: { filename: 'invoice.pdf', file_data: dataUrlOf(textPdf(['Invoice 7', 'Twelve pencils'])) } };
const READ = { id: 'file-parser', pdf: { engine: 'pdf-text' } };
/** More than any answer has: little more is reserved than is used. */
const MAX_TOKENS = 16;
const PAYMENT_REQUIRED = 402;
/** Statuses that ask for a retry, or say that an upstream has failed. */
const EXPECTED = new Set([200, PAYMENT_REQUIRED, 408, 429, 502, 503, 504]);

function wholeOf(script: Script): string {
  return Array.from({ length: script === 'long' ? LONG_TIMES : TIMES }, (_, index) => `word${index} `).join('');
}

const answer = z.looseObject({
  choices: z.array(z.looseObject({ message: z.looseObject({ content: z.string().nullish() }) })).default([]),
  usage: z.looseObject({ cost: z.number().optional() }).optional(),
  error: z.looseObject({ code: z.number(), type: z.string().optional() }).optional(),
});

/** Sends one call to the next gateway and reads its answer to the end. @throws when it hangs */
export async function sendCall(environment: BillingEnvironment, call: BilledCall): Promise<Outcome> {
  const { model, steps } = scripts[call.script];
  const plan = plannedCall(steps);
  const { messages, ...request } = requestFor(plan, model, call.isStream);
  // The last message has the script.
  const file = call.hasFile === true ? { messages: [{ role: 'user', content: [PDF] }, ...messages], plugins: [READ] } : { messages };
  const body = { ...request, ...file, user: plan.name, max_tokens: MAX_TOKENS };
  const detach = call.isDetached === true ? { headers: { 'x-detach': 'true' } } : {};
  const sent: StreamedCall = { name: plan.name, whole: wholeOf(call.script), body, key: call.key.secret, ...detach };
  const outcome = call.isStream ? await streamed(environment, call, sent) : await whole(environment, call, sent);
  if (outcome.status === PAYMENT_REQUIRED) outcome.fault = call.key.limitNano === null ? 'a key without a limit has no credit' : null;
  return outcome;
}

async function streamed(environment: BillingEnvironment, call: BilledCall, sent: StreamedCall): Promise<Outcome> {
  const { text, ends, behindEnd, wasCut, wasResumed, refusedWith, generationId, cost, fault } = await readToEnd(environment, sent);
  const [end] = ends;
  const status = refusedWith ?? (generationId === null ? null : 200);
  const isEnded = refusedWith !== null || (wasCut && !wasResumed) || (ends.length === 1 && behindEnd === 0);
  const isPrefix = end === 'done' ? text === sent.whole : sent.whole.startsWith(text);
  const why = isEnded ? (isPrefix ? null : `its text is ${JSON.stringify(text)}`) : `it has ${ends.length} ends, and ${behindEnd} events behind the first`;
  const costNano = cost === null ? null : nanoOfUsd(cost);
  return { ...call, name: sent.name, status, end: end === 'done' ? 'completed' : (end ?? null), generationId, text, costNano, fault: fault ?? why };
}

async function whole(environment: BillingEnvironment, call: BilledCall, sent: StreamedCall): Promise<Outcome> {
  const gateway = environment.nextRouterUrl();
  const nothing: Outcome = { ...call, name: sent.name, status: null, end: null, generationId: null, text: '', costNano: null, fault: null };
  const response = await post(`${gateway}/api/v1/chat/completions`, sent.body, headersOf(sent)).answer.catch(() => null);
  if (response === null || !(await inTime(response.ended))) {
    return { ...nothing, fault: isDying(environment, gateway) ? null : 'a running gateway closed the connection without an answer' };
  }
  const { status, text: body, headers } = response;
  const generationId = headers['x-generation-id']?.toString() ?? null;
  if (!EXPECTED.has(status)) return { ...nothing, status, generationId, fault: `it was answered ${status}: ${body}` };
  const { choices, usage, error } = answer.parse(JSON.parse(body));
  const text = choices[0]?.message.content ?? '';
  const end = status === 200 ? (error?.code ?? 'completed') : null;
  const fault = end === 'completed' && text !== sent.whole ? `its text is ${JSON.stringify(text)}` : null;
  return { ...nothing, status, end, generationId, text, costNano: usage?.cost === undefined ? null : nanoOfUsd(usage.cost), fault };
}

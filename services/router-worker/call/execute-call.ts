import type { TokenStream } from '#bus/bus.ts';
import { bodyFrame } from '#bus/messages/frame.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import { refuseUnconfigured } from '#shared/config/refuse-unconfigured.ts';
import type { EndpointConfig } from '#shared/config/router-config.ts';
import type { RouterErrorBody, Usage } from '#shared/contracts/router/chat-completion.ts';
import type { ChatRequest } from '#shared/contracts/router/chat-request.ts';
import type { FailureEvent } from '#shared/contracts/router/response-object.ts';
import { type Failure, failureOf, type SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { type Answer, emptyAnswer, finishReasonOf, hasContent } from '#shared/surfaces/answer.ts';
import { errorBodyOf, type PreviousError } from '#shared/surfaces/error-body.ts';
import type { AnswerHead, Surface } from '#shared/surfaces/surface.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { CallSignal } from '../call-signal.ts';
import { annotationsBehind } from '../pipeline/annotations-behind.ts';
import type { PluginEngines } from '../pipeline/engines.ts';
import { type Pipeline, pipelineFor, stagedCall, transformedAnswer } from '../pipeline/pipeline.ts';
import { providerRefusal } from '../pipeline/provider-refusal.ts';
import type { Stage, StagedCall } from '../pipeline/stage.ts';
import { stages as allStages } from '../pipeline/stages.ts';
import { AnswerStream } from './answer-stream.ts';
import type { Attempted, CallObserver, RunDeps } from './attempt.ts';
import { type Candidate, type Catalogue, type Choice, upstreamRequestOf } from './candidates.ts';
import { askedOf, choiceOf, type Decided } from './choice.ts';
import { conversationOf } from './conversation.ts';
import { noProvider } from './decision.ts';
import { echoBody } from './echo-body.ts';
import { type CallOutcome, runCall } from './run-call.ts';
import { stageContextOf } from './stage-context.ts';
import type { StickyEndpoints } from './sticky-endpoints.ts';
import { type AddedUse, type AttemptEnd, type Bill, billOf } from './usage.ts';

const NO_USAGE: Usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, is_byok: false };
/** Provider name in errors when none was asked. */
const DEFAULT_PROVIDER_NAME = 'Switchyard';

/** The result of a call, which an actor gets as a command. */
export type CallResult =
  | {
      type: 'completed';
      text: string;
      /** `arguments` is the model's text, which need not be JSON. */
      toolCalls: { id: string; name: string; arguments: string }[];
      model: string;
      provider: string;
      finishReason: string;
      usage: { promptTokens: number; completionTokens: number };
      /** Absent without prices. */
      costUsd?: number;
    }
  | { type: 'failed'; failure: Failure };

export interface Execution {
  call: RouterCall;
  surface: Surface;
  /** Delivery number of the work item. */
  attempt: number;
  /** Its reason is a SwitchyardError. */
  signal: CallSignal;
  /** False once the lease is lost: another worker may publish for this call. */
  mayPublish(): boolean;
  tokens: Pick<TokenStream, 'publish'>;
  /** Their subject. */
  framesAt: string;
  nowMs: number;
  /** Called once, before the first attempt; not for a request that no decision was made about. */
  decided?(choice: Choice): void;
  /** Called per attempt; with `capturesContent` the answer has text. */
  attempted?: CallObserver['attempted'];
  /** Called once, before the terminal frame, which waits for the promise and is not sent when it rejects. */
  ending?(ending: Ending): Promise<void> | null;
  capturesContent?: boolean;
  /** `errors` of the router's file. */
  failures?: FailureEvent;
}

/** How a call has ended. */
export interface Ending {
  how: AttemptEnd;
  /** Of the endpoint that answered or was asked last; null: none was asked, or nothing came of it. */
  bill: Bill | null;
  /** As the bill's; null with it. */
  answer: Answer | null;
}

/** What readers have of a call whose worker died, and the endpoint that it came from. */
export interface ShownAnswer {
  answer: Answer;
  prices: EndpointConfig['prices'];
}

export interface ExecuteDeps extends RunDeps {
  catalogue: Catalogue;
  /** Of plugins; absent: none is configured. */
  engines?: PluginEngines;
  /** Absent: conversations are not bound to endpoints. */
  sticky?: Pick<StickyEndpoints, 'of' | 'served'>;
  /** Absent: those of pipeline/stages.ts. */
  stages?: readonly Stage[];
}

/** `added`: what stages have used; absent: nothing. */
type StagedOutcome = CallOutcome & { added?: AddedUse };

/** Executes one call and publishes its frames up to the terminal one: an error ends the call. @throws only what `ending` rejects with */
export async function executeCall(execution: Execution, deps: ExecuteDeps): Promise<CallResult> {
  const { signal, mayPublish } = execution;
  let last: Attempted | null = null;
  const responseWriter = responseWriterFor(execution, (attempt) => {
    last = attempt;
  });
  let outcome: StagedOutcome;
  try {
    signal.throwIfAborted();
    outcome = await runPipeline(execution, responseWriter.observer, deps);
  } catch (error) {
    report(error, deps.log);
    outcome = { type: 'failed', error, candidate: null, partial: null, previousErrors: [] };
  }
  if (!mayPublish()) return { type: 'failed', failure: failureOf(signal.reason) };
  const ending = endingOf(outcome, last);
  const recorded = execution.ending?.(ending) ?? null;
  if (recorded !== null) {
    await recorded;
    if (!mayPublish()) return { type: 'failed', failure: failureOf(signal.reason) };
  }
  switch (outcome.type) {
    case 'completed':
      return responseWriter.complete(outcome.candidate, outcome.answer, (ending.bill as Bill).usage);
    case 'failed':
      return responseWriter.fail(outcome.error, outcome, ending.bill);
    case 'aborted':
      return responseWriter.fail(signal.reason, outcome, ending.bill);
  }
}

/** Of a stage; those of attempts are logged there. */
function report(error: unknown, log: Log): void {
  const { code, message } = failureOf(error);
  if (code === 'internal') log.error({ code, err: error }, 'a stage of a router call failed');
  else if (code === 'router.plugin_unavailable') log.warn({ code, reason: message }, 'the engine of a plugin can not be used');
}

function endingOf(outcome: StagedOutcome, last: Attempted | null): Ending {
  const { added } = outcome;
  if (outcome.type === 'completed') {
    const { answer, candidate } = outcome;
    return { how: 'completed', answer, bill: billOf(answer, candidate.request, candidate.endpoint.prices, 'completed', added) };
  }
  if (last === null || !(last.answer.usage !== null || hasContent(last.answer))) return { how: outcome.type, answer: null, bill: null };
  const { answer, candidate } = last;
  return { how: outcome.type, answer, bill: billOf(answer, candidate.request, candidate.endpoint.prices, outcome.type, added) };
}

/** A streamed answer is published by its end, so the answer transforms have the others alone. @throws, or rejects, as its stages do */
function runPipeline(execution: Execution, observer: CallObserver, deps: ExecuteDeps): Promise<StagedOutcome> {
  const { call } = execution;
  const asked = askedOf(call, deps.catalogue);
  const pipeline = pipelineFor(asked, deps.stages ?? allStages);
  // Most calls have neither stages nor transforms, and need no promise for them.
  if (pipeline.request.length === 0 && pipeline.answer.length === 0) return runStaged({ request: asked }, pipeline, execution, observer, deps);
  return runTransformed(asked, pipeline, execution, observer, deps);
}

async function runTransformed(asked: ChatRequest, pipeline: Pipeline, execution: Execution, observer: CallObserver, deps: ExecuteDeps): Promise<StagedOutcome> {
  const { call, signal } = execution;
  const staged = await stagedOf(asked, pipeline, execution, deps);
  const { request, annotations, searches, costNano } = staged;
  const parts = annotations.length === 0 ? pipeline.parts : [...pipeline.parts, annotationsBehind(annotations)];
  const outcome = await runStaged(staged, { ...pipeline, parts }, execution, observer, deps);
  const added = { searches, costNano };
  if (outcome.type !== 'completed' || call.want === 'frames') return { ...outcome, added };
  return { ...outcome, added, answer: await transformedAnswer(pipeline.answer, outcome.answer, request, signal) };
}

function stagedOf(asked: ChatRequest, pipeline: Pipeline, execution: Execution, deps: ExecuteDeps): Promise<StagedCall> {
  const { signal, nowMs } = execution;
  const context = stageContextOf({ signal, nowMs, candidatesOf: (request) => choiceOf({ request }, null, execution.call, deps).candidates }, deps);
  refuseUnconfigured(asked, context.engines);
  return stagedCall(pipeline.request, asked, context);
}

/** A call that may be bound to the endpoint of those before it waits for what the cache says; all others are begun at once. @throws as `runDecided` does */
function runStaged(staged: Decided, pipeline: Pipeline, execution: Execution, observer: CallObserver, deps: ExecuteDeps): Promise<CallOutcome> {
  const { catalogue, sticky } = deps;
  const conversation = sticky === undefined ? null : conversationOf(execution.call, staged.request, catalogue);
  if (sticky === undefined || conversation === null) return runDecided(staged, null, pipeline, execution, observer, deps);
  const run = async (stickyTo: string | null) => {
    const outcome = await runDecided(staged, stickyTo, pipeline, execution, observer, deps);
    if (outcome.type === 'completed') sticky.served(conversation, outcome.candidate, outcome.answer);
    return outcome;
  };
  const stickyTo = sticky.of(conversation);
  return stickyTo instanceof Promise ? stickyTo.then(run) : run(stickyTo);
}

/** @throws `router.no_provider`, and as `candidatesFor` does */
function runDecided(
  staged: Decided,
  stickyTo: string | null,
  { parts }: Pipeline,
  execution: Execution,
  observer: CallObserver,
  deps: ExecuteDeps,
): Promise<CallOutcome> {
  const choice = choiceOf(staged, stickyTo, execution.call, deps);
  execution.decided?.(choice);
  const { candidates, decision } = choice;
  if (candidates.length === 0) throw noProvider(decision);
  return runCall({ candidates, partTransforms: parts }, observer, execution.signal, deps);
}

/** Ends a call with an error without executing it. @param shown null: readers have nothing of it @throws what `ending` rejects with */
export async function refuseCall(execution: Execution, error: SwitchyardError, shown: ShownAnswer | null): Promise<CallResult> {
  const bill = shown === null ? null : billOf(shown.answer, execution.call.request, shown.prices, 'failed');
  const recorded = execution.ending?.({ how: 'failed', answer: shown?.answer ?? null, bill }) ?? null;
  if (recorded !== null) await recorded;
  return responseWriterFor(execution, () => {}).fail(error, { candidate: null, partial: null, previousErrors: [] }, bill);
}

/** `candidate` is null when no provider was asked. */
interface Answering {
  candidate: Candidate | null;
  partial: Answer | null;
  previousErrors: readonly PreviousError[];
}

interface ResponseWriter {
  observer: CallObserver;
  complete(candidate: Candidate, answer: Answer, usage: Usage): CallResult;
  fail(error: unknown, answering: Answering, bill: Bill | null): CallResult;
}

/** Writes the response as the call wants it: frames, one body, or nothing. */
function responseWriterFor(execution: Execution, onAttempted: (attempt: Attempted) => void): ResponseWriter {
  const { call, surface, attempt, tokens, framesAt, nowMs, attempted = () => {}, capturesContent = false, failures } = execution;
  const created = Math.floor(nowMs / 1_000);
  const begunAtMs = performance.now();
  const now = () => Math.floor((nowMs + performance.now() - begunAtMs) / 1_000);
  const headOf = (candidate: Candidate | null): AnswerHead => ({
    id: call.callId,
    created,
    now,
    request: call.request,
    ...(failures !== undefined && { failures }),
    model: candidate?.model.id ?? call.request.model ?? call.request.models?.[0] ?? '',
    provider: candidate?.provider.name ?? DEFAULT_PROVIDER_NAME,
  });
  const statesTemplate = call.surface !== undefined;
  const target = { surface, callId: call.callId, attempt, isLogged: statesTemplate && call.reply !== null, statesTemplate, tokens, framesAt };
  const stream = call.want === 'frames' ? new AnswerStream(target, headOf(null)) : null;
  return {
    observer: {
      // Bodies, actors' results and traces need the whole text; a stream was published already.
      isStreamed: stream !== null,
      retainsAnswer: call.want === 'body' || call.reply !== null || capturesContent,
      begin(candidate, adapter, answer) {
        stream?.begin(headOf(candidate), answer);
        if (call.request.debug?.echo_upstream_body === true) stream?.debug(echoBody(adapter.upstreamBody(upstreamRequestOf(candidate))));
      },
      chosen: (candidate, answer) => stream?.begin(headOf(candidate), answer),
      parts: (parts) => stream?.parts(parts),
      attempted(tried) {
        onAttempted(tried);
        attempted(tried);
      },
    },
    complete(candidate, answer, usage) {
      stream?.finish(answer, usage);
      if (call.want === 'body') tokens.publish(framesAt, bodyFrame(200, surface.wholeBody(answer, headOf(candidate), usage)));
      return {
        type: 'completed',
        text: answer.text,
        // flatMap skips indexes that an upstream left empty.
        toolCalls: answer.toolCalls.flatMap(({ id, function: { name, arguments: text } }) => [{ id, name, arguments: text }]),
        model: candidate.model.id,
        provider: candidate.provider.name,
        finishReason: finishReasonOf(answer),
        usage: { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens },
        ...(usage.cost === undefined ? {} : { costUsd: usage.cost }),
      };
    },
    fail(failed, { candidate, partial, previousErrors }, bill) {
      const isWithoutFallback = call.request.provider?.allow_fallbacks === false;
      const error = candidate === null || partial !== null ? failed : providerRefusal(failed, candidate, call.request);
      const body = errorBodyOf(error, { providerName: candidate?.provider.name ?? null, previousErrors, isWithoutFallback });
      const usage = bill?.usage ?? null;
      if (surface.endsForLength?.(body.error) === true) {
        const cutOff = cutOffAnswer(partial);
        stream?.finish(cutOff, usage ?? NO_USAGE);
        if (call.want === 'body') tokens.publish(framesAt, bodyFrame(200, surface.wholeBody(cutOff, headOf(candidate), usage ?? NO_USAGE)));
      } else {
        stream?.fail(body, usage);
        if (call.want === 'body') tokens.publish(framesAt, failedBody(surface, body, headOf(candidate), partial, bill));
      }
      return { type: 'failed', failure: { code: failureOf(error).code, message: body.error.message, details: body.error.metadata ?? {} } };
    },
  };
}

/** What came before an error that its API states as an end for length. */
function cutOffAnswer(partial: Answer | null): Answer {
  return { ...(partial ?? emptyAnswer()), finishReason: 'length' };
}

/** After content the error is returned beside the answer; without content it is the response. */
function failedBody(surface: Surface, body: RouterErrorBody, head: AnswerHead, partial: Answer | null, bill: Bill | null): Uint8Array {
  if (partial === null || bill === null) return bodyFrame(body.error.code, JSON.stringify(body));
  return bodyFrame(200, surface.wholeBody(partial, head, bill.usage, body.error));
}

import { bodyFrame } from '#bus/messages/frame.ts';
import type { FileAnnotation, RouterErrorBody, Usage } from '#shared/contracts/router/chat-completion.ts';
import { withMetadata } from '#shared/contracts/router/router-metadata.ts';
import { failureOf } from '#shared/errors/switchyard-error.ts';
import { type Answer, emptyAnswer, finishReasonOf } from '#shared/surfaces/answer.ts';
import { errorBodyOf, type PreviousError } from '#shared/surfaces/error-body.ts';
import type { AnswerHead, Surface } from '#shared/surfaces/surface.ts';
import { providerRefusal } from '../pipeline/provider-refusal.ts';
import { AnswerStream } from './answer-stream.ts';
import type { Attempted, CallObserver } from './attempt.ts';
import { type Candidate, upstreamRequestOf } from './candidates.ts';
import { echoBody } from './echo-body.ts';
import type { CallResult, Execution } from './execution.ts';
import type { RoutingReport } from './routing-report.ts';
import type { Bill } from './usage.ts';

const NO_USAGE: Usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, is_byok: false };
/** Provider name in errors when none was asked. */
const DEFAULT_PROVIDER_NAME = 'Switchyard';

/** `candidate` is null when no provider was asked. */
interface Answering {
  candidate: Candidate | null;
  partial: Answer | null;
  previousErrors: readonly PreviousError[];
  /** What was read for the call: its client sends it back with the next one. */
  files: readonly FileAnnotation[];
}

export interface ResponseWriter {
  observer: CallObserver;
  complete(candidate: Candidate, answer: Answer, usage: Usage): CallResult;
  fail(error: unknown, answering: Answering, bill: Bill | null): CallResult;
}

/** Writes the response as the call wants it: frames, one body, or nothing. @param routing null: the caller does not want to know where it went */
export function responseWriterFor(execution: Execution, routing: RoutingReport | null, onAttempted: (attempt: Attempted) => void): ResponseWriter {
  const { call, surface, attempt, tokens, framesAt, nowMs, attempted = () => {}, answering = () => {}, capturesContent = false, failures } = execution;
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
      ...(stream !== null && surface.maxStreamedTextChars !== undefined && { maxTextChars: surface.maxStreamedTextChars }),
      retainsAnswer: call.want === 'body' || call.reply !== null || capturesContent,
      begin(candidate, adapter, answer) {
        answering(candidate, answer);
        stream?.begin(headOf(candidate), answer);
        if (call.request.debug?.echo_upstream_body === true) stream?.debug(echoBody(adapter.upstreamBody(upstreamRequestOf(candidate))));
      },
      chosen(candidate, answer) {
        answering(candidate, answer);
        stream?.begin(headOf(candidate), answer);
      },
      parts: (parts) => stream?.parts(parts),
      attempted(tried) {
        onAttempted(tried);
        routing?.attempted(tried);
        attempted(tried);
      },
    },
    complete(candidate, answer, usage) {
      const metadata = routing?.metadata(candidate);
      stream?.finish(answer, usage, metadata);
      if (call.want === 'body') tokens.publish(framesAt, bodyFrame(200, withMetadata(surface.wholeBody(answer, headOf(candidate), usage), metadata)));
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
        ...(answer.vectors !== null && { vectors: answer.vectors }),
      };
    },
    fail(failed, { candidate, partial, previousErrors, files }, bill) {
      const isWithoutFallback = call.request.provider?.allow_fallbacks === false;
      const error = candidate === null || partial !== null ? failed : providerRefusal(failed, candidate, call.request);
      const body = errorBodyOf(error, { providerName: candidate?.provider.name ?? null, previousErrors, isWithoutFallback });
      const details = body.error.metadata ?? {};
      if (files.length > 0) body.error.metadata = { ...details, file_annotations: files };
      if (routing !== null) body.openrouter_metadata = routing.metadata(partial === null ? null : candidate);
      const { openrouter_metadata: metadata } = body;
      const usage = bill?.usage ?? null;
      if (surface.endsForLength?.(body.error) === true) {
        const cutOff = cutOffAnswer(partial);
        stream?.finish(cutOff, usage ?? NO_USAGE, metadata);
        const whole = () => withMetadata(surface.wholeBody(cutOff, headOf(candidate), usage ?? NO_USAGE), metadata);
        if (call.want === 'body') tokens.publish(framesAt, bodyFrame(200, whole()));
      } else {
        stream?.fail(body, usage);
        if (call.want === 'body') tokens.publish(framesAt, failedBody(surface, body, headOf(candidate), partial, bill));
      }
      return { type: 'failed', failure: { code: failureOf(error).code, message: body.error.message, details } };
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
  return bodyFrame(200, withMetadata(surface.wholeBody(partial, head, bill.usage, body.error), body.openrouter_metadata));
}

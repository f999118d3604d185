import type { TokenStream } from '#bus/bus.ts';
import type { RouterCall } from '#bus/messages/router.ts';
import type { FailureEvent } from '#shared/contracts/router/response-object.ts';
import type { Failure } from '#shared/errors/switchyard-error.ts';
import type { Answer } from '#shared/surfaces/answer.ts';
import type { Surface } from '#shared/surfaces/surface.ts';
import type { Log } from '#shared/telemetry/log.ts';
import type { CallSignal } from '../call-signal.ts';
import type { PipelineReport, RouterSearch } from '../pipeline/stage.ts';
import type { CallObserver } from './attempt.ts';
import type { Candidate, Choice } from './candidates.ts';
import type { AddedUse, AttemptEnd, Bill } from './usage.ts';

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
      /** Of a call for vectors: each as JSON, in the order of the inputs. Absent: it was a chat. */
      vectors?: readonly string[];
    }
  | { type: 'failed'; failure: Failure };

export interface Execution {
  call: RouterCall;
  surface: Surface;
  /** Of its delivery, in ids of frames. */
  attempt: number;
  /** Its reason is a SwitchyardError. */
  signal: CallSignal;
  /** False once the lease is lost: another worker may publish for this call. */
  mayPublish(): boolean;
  tokens: Pick<TokenStream, 'publish'>;
  /** Their subject. */
  framesAt: string;
  nowMs: number;
  /** With the ids of the call; absent: that of the worker. */
  log?: Log;
  /**
   * Called before the first attempt; not for a request that no decision was made about. Again, with the first candidates and the others, before a call whose
   * files were left to endpoints goes to those that take none.
   */
  decided?(choice: Choice): void;
  /** Called with what stages have used, before the first attempt; again where they have run again. Not for a call without stages. */
  added?(added: AddedUse): void;
  /** Called per plugin that applies, once its end is known. Absent: the caller does not want to know. */
  staged?: PipelineReport;
  /** Called with each attempt whose parts are published from then on; the answer is filled while it runs. */
  answering?(candidate: Candidate, answer: Answer): void;
  /** Called per attempt; with `capturesContent` the answer has text. */
  attempted?: CallObserver['attempted'];
  /** Called once, before the terminal frame, which waits for the promise and is not sent when it rejects. */
  ending?: ((ending: Ending) => Promise<void> | null) | undefined;
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
  /** By the router; null: others there were may have been the endpoint's. Absent: no stage of this worker has run. */
  search?: RouterSearch | null;
}

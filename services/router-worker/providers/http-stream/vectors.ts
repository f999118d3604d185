import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { HttpExchange } from '#shared/http/client.ts';
import type { CallSignal } from '../../call-signal.ts';
import type { VectorCall, Vectors } from '../provider.ts';
import { beginExchange, type JsonRequest, type JsonSender } from './begin-exchange.ts';
import { BoundedText } from './bounded-text.ts';
import { ErrorEvent } from './error-event.ts';
import { SilenceGuard } from './silence-guard.ts';
import { toBreak, toRefusal } from './to-error.ts';

/** Of one answer: 2,048 vectors of 3,072 dimensions in base64, or a tenth of them as numbers with all digits. */
const MAX_ANSWER_BYTES = 40 * 1024 * 1024;
const ACCEPT = { accept: 'application/json' };

/** How a vendor's API is asked for vectors. Pure. */
export interface VectorDialect {
  /** Before `requestFor`: adds what the request needs from elsewhere. Absent: nothing. @throws as `ProviderAdapter.embed` */
  prepare?(call: VectorCall, signal: CallSignal): Promise<VectorCall>;
  requestFor(call: VectorCall): JsonRequest;
  /** @param body parsed JSON @throws ZodError for a body that is no answer; ErrorEvent for an error in a 2xx */
  read(body: unknown): Vectors;
}

/** One request for vectors: timeouts, refusals, masked secrets and aborts are those of a chat. */
export async function requestVectors(sender: JsonSender, dialect: VectorDialect, call: VectorCall, signal: CallSignal): Promise<Vectors> {
  const { upstream } = sender;
  const guard = new SilenceGuard(upstream.name, call.timeouts, signal, sender.deadlines);
  let exchange: HttpExchange | null = null;
  let isWhole = false;
  try {
    const prepared = dialect.prepare === undefined ? call : await dialect.prepare(call, signal);
    const request = dialect.requestFor(prepared);
    const begun = await beginExchange(sender, { ...request, headers: { ...ACCEPT, ...request.headers } }, guard);
    if (begun.refusal !== null) throw toRefusal(upstream, begun.refusal);
    exchange = begun.exchange;
    const body = new BoundedText(MAX_ANSWER_BYTES);
    isWhole = await exchange.read((piece) => {
      guard.contentCame();
      guard.noteReceived();
      return body.add(piece);
    });
    if (!isWhole) throw new SwitchyardError('router.provider_unavailable', `${upstream.name} sent an answer of more than ${MAX_ANSWER_BYTES} bytes`);
    return dialect.read(parsed(body.text));
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw toBreak(upstream, error);
  } finally {
    guard.stop();
    if (isWhole) exchange?.release();
    else exchange?.abort(new Error('the answer is read no further'));
  }
}

/** @throws SyntaxError; ErrorEvent for an error that came with a 2xx */
function parsed(text: string): unknown {
  const body: unknown = JSON.parse(text);
  if (typeof body === 'object' && body !== null && 'error' in body && body.error !== null && body.error !== undefined) throw new ErrorEvent(body.error);
  return body;
}

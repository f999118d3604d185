import { fetch, type Response } from 'undici';
import { z } from 'zod';
import type { Environment } from '#shared/config/secret-ref.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { openOutbound } from '#shared/http/outbound.ts';
import { embeddingsOf } from './embedding-models.ts';
import type { Upstream } from './upstream.ts';

const TIMEOUT_MS = 5_000;
/** The longest lists of public upstreams are about 1 MiB. */
const MAX_BYTES = 8 * 1024 * 1024;
const MAX_MODELS = 1_000;
const NAME = /^[A-Za-z0-9._:/-]{1,256}$/;
/** For other characters fetch throws an error that quotes the text. */
const HEADER_TEXT = /^[\t\x20-\x7e\x80-\xff]*$/;

const modelList = z.looseObject({ data: z.array(z.looseObject({ id: z.string() })) });

/** Asks `GET <base>/models` unless the models are given. @throws `config.invalid` with the reason and what to do */
export async function withModels(upstream: Upstream, environment: Environment): Promise<Upstream & { models: readonly string[] }> {
  if (upstream.models !== null) return { ...upstream, models: upstream.models };
  const { origin, pathname, search } = new URL(upstream.baseUrl);
  const url = `${origin}${pathname.replace(/\/+$/, '')}/models`;
  const names = namesIn(await fetchText(url, search, { environment, hasKey: upstream.hasKey }));
  if (names === null) throw unknownModels(`${url} does not return a list of models`);
  const usable = [...new Set(names)].filter((name) => NAME.test(name)).slice(0, MAX_MODELS);
  if (usable.length === 0) throw unknownModels(`${url} lists no model that can be used`);
  return { ...upstream, models: [...usable.filter((name) => embeddingsOf(name) === null), ...usable.filter((name) => embeddingsOf(name) !== null)] };
}

async function fetchText(url: string, search: string, { environment, hasKey }: { environment: Environment; hasKey: boolean }): Promise<string> {
  const key = hasKey ? environment.OPENAI_API_KEY?.trim() : undefined;
  if (key !== undefined && !HEADER_TEXT.test(key)) {
    throw new SwitchyardError('config.invalid', 'OPENAI_API_KEY contains a character that is not allowed in an HTTP header, such as a line break: remove it');
  }
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const dispatcher = openOutbound(environment).openDispatcher({ connectTimeoutMs: TIMEOUT_MS, maxConnections: 1 });
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const response = await fetch(`${url}${search}`, { headers, signal, redirect: 'manual', dispatcher });
    if (!response.ok) {
      await response.body?.cancel();
      throw refusal(url, response.status, key !== undefined);
    }
    return await readBounded(url, response);
  } catch (error) {
    if (error instanceof SwitchyardError) throw error;
    const reason = signal.aborted ? `no response within ${TIMEOUT_MS / 1_000} s` : reasonOf(error);
    throw unknownModels(`${url} can't be reached (${reason})`, { remedy: 'start the server there', cause: error });
  } finally {
    await dispatcher.destroy();
  }
}

async function readBounded(url: string, { body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw unknownModels(`${url} returns more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function namesIn(text: string): string[] | null {
  try {
    return modelList.parse(JSON.parse(text)).data.map(({ id }) => id);
  } catch {
    return null;
  }
}

function refusal(url: string, status: number, hasKey: boolean): SwitchyardError {
  if (status !== 401 && status !== 403) return unknownModels(`${url} returns ${status}`);
  const advice = hasKey ? 'the upstream does not accept OPENAI_API_KEY' : 'the upstream requires a key: set OPENAI_API_KEY';
  return new SwitchyardError('config.invalid', `OPENAI_BASE_URL: ${url} returns ${status}: ${advice}`);
}

function unknownModels(what: string, { remedy = 'correct the address', cause }: { remedy?: string; cause?: unknown } = {}): SwitchyardError {
  return new SwitchyardError('config.invalid', `OPENAI_BASE_URL: ${what}: ${remedy}, or list its models in OPENAI_MODELS`, { cause });
}

/** fetch's own message is generic; its cause has the reason. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : null;
  if (cause instanceof Error) return 'code' in cause ? String(cause.code) : cause.message;
  return error instanceof Error ? error.message : String(error);
}

import type { Trace, TraceList, TraceSource } from '../traces.tsx';
import type { RouterKey } from './router-key.ts';

/** What the console reads of the router's answers (`/openapi.json` has all of it). */
export interface Model {
  id: string;
  name: string;
  context_length: number | null;
  pricing: { prompt: string; completion: string };
}

interface Percentiles {
  p50: number;
  p90: number;
}

export interface Endpoint {
  name: string;
  tag: string;
  provider_name: string;
  status: number;
  uptime_last_30m: number | null;
  latency_last_30m: Percentiles | null;
  throughput_last_30m: Percentiles | null;
}

export interface Generation {
  id: string;
  model: string;
  provider_name: string | null;
  created_at: string;
  finish_reason: string | null;
  latency: number | null;
  generation_time: number;
  tokens_prompt: number;
  tokens_completion: number;
  total_cost: number;
  provider_responses: { endpoint_id?: string; provider_name: string; status: number; error_type?: string; latency?: number; generation_time: number }[];
  routing: {
    requested: string[] | null;
    strategy: string;
    sorted_by: string | null;
    endpoints: {
      total: number;
      available: { endpoint: string; selected: boolean; health: string | null; price: number | null; sticky: boolean; slow: boolean }[];
    };
    excluded: { filter: string; total: number; endpoints: string[] }[];
  } | null;
}

/** An answer other than 2xx. */
class RouterError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Requests with a key that is in this object alone: neither the page's address nor any storage has it. */
export class RouterApi {
  readonly #key: string;

  constructor(key: string) {
    this.#key = key;
  }

  models(offset: number, limit: number): Promise<{ data: Model[]; total_count: number }> {
    return this.#request('GET', `/models?offset=${offset}&limit=${limit}`);
  }

  async endpoints(modelId: string): Promise<Endpoint[]> {
    const { data } = await this.#request<{ data: { endpoints: Endpoint[] } }>(
      'GET',
      `/models/${modelId.split('/').map(encodeURIComponent).join('/')}/endpoints`,
    );
    return data.endpoints;
  }

  async keys(offset: number): Promise<RouterKey[]> {
    const { data } = await this.#request<{ data: RouterKey[] }>('GET', `/keys?include_disabled=true&offset=${offset}`);
    return data;
  }

  async changeKey(hash: string, change: { disabled: boolean }): Promise<void> {
    await this.#request('PATCH', `/keys/${hash}`, change);
  }

  async exposeKey(hash: string, where: string): Promise<void> {
    await this.#request('POST', `/keys/${hash}/exposed`, { where });
  }

  async generation(id: string): Promise<Generation> {
    const { data } = await this.#request<{ data: Generation }>('GET', `/generation?id=${encodeURIComponent(id)}`);
    return data;
  }

  traces(): TraceSource {
    return { list: () => this.#request<TraceList>('GET', '/traces?limit=200'), one: (id) => this.#request<Trace>('GET', `/traces/${encodeURIComponent(id)}`) };
  }

  async #request<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(`/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      credentials: 'omit',
      cache: 'no-store',
    });
    const answer: unknown = await response.json().catch(() => null);
    if (response.ok) return answer as Answer;
    const { error } = (answer ?? {}) as { error?: { message?: string } };
    throw new RouterError(response.status, error?.message ?? `The router answered with ${response.status}`);
  }
}

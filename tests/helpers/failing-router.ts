interface FailingRouter {
  upstreamUrl: string;
  /** Never answers. */
  deafUrl: string;
  /** Secrets of the keys, by the ids below. */
  keys: Record<string, string>;
}

/** A router's file and variables for each error of the contract: a key for each refusal, and a model whose upstream never answers. */
export function failingRouter({ upstreamUrl, deafUrl, keys }: FailingRouter) {
  const config = {
    providers: [
      { slug: 'loopback', name: 'Loopback', kind: 'openai-compatible', base_url: upstreamUrl },
      { slug: 'deaf', kind: 'openai-compatible', base_url: deafUrl },
    ],
    models: [
      { id: 'loop/back', endpoints: [{ provider: 'loopback', upstream_model: 'upstream-model', prices: { prompt: '1', completion: '1' } }] },
      { id: 'deaf/model', endpoints: [{ provider: 'deaf', upstream_model: 'upstream-model' }] },
    ],
    keys: [
      { id: 'free', key: '${KEY_FREE}' },
      { id: 'spent', key: '${KEY_SPENT}', limit: '0' },
      { id: 'rated', key: '${KEY_RATED}', limits: { requests_per_minute: 1 } },
      { id: 'off', key: '${KEY_OFF}', disabled: true },
      { id: 'manager', key: '${KEY_MANAGER}', management: true },
    ],
  };
  const variables = Object.fromEntries(Object.entries(keys).map(([id, secret]) => [`KEY_${id.toUpperCase()}`, secret]));
  return { config, variables };
}

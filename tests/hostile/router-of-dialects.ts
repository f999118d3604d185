import { DIALECTS, openUpstreamOf, UPSTREAM_MODELS } from '../helpers/http-dialects.ts';
import { openRouterInProcess, type RouterInProcess } from '../helpers/router-in-process.ts';
import type { RecordingUpstream } from '../upstreams/loopback-upstream.ts';

/** Of each vendor one, and the scripted one. */
export const MODELS = [...DIALECTS.map((name) => `${name}/model`), 'scripted/model'];

interface RouterOfDialectsOptions {
  /** Of the router's file, with their texts in `variables`. */
  keys: readonly object[];
  variables: Readonly<Record<string, string>>;
  /** Of every model, beside those of prompts and completions. */
  prices?: Readonly<Record<string, string>>;
  responseFormats?: readonly string[];
  /** Addresses at which pictures may be fetched. */
  outboundAllowHosts?: ReadonlySet<string>;
}

/** A router in this process before upstreams of all dialects, whose models take every modality; the upstreams answer anything, and are closed with it. */
export async function openRouterOfDialects({
  keys,
  variables,
  prices = {},
  responseFormats,
  outboundAllowHosts = new Set(),
}: RouterOfDialectsOptions): Promise<RouterInProcess> {
  const upstreams: RecordingUpstream[] = [];
  for (const name of DIALECTS) {
    const upstream = await openUpstreamOf(name);
    upstream.takeAnything();
    upstreams.push(upstream);
  }
  const takesAll = {
    prices: { prompt: '1', completion: '2', ...prices },
    modalities: ['text', 'image', 'audio', 'video', 'file'],
    ...(responseFormats && { response_formats: responseFormats }),
  };
  const config = {
    providers: [
      ...DIALECTS.map((kind, index) => ({ slug: kind, kind, base_url: upstreams[index]?.baseUrl, api_key: '${VENDOR_KEY}' })),
      { slug: 'scripted', kind: 'scripted' },
    ],
    models: [
      ...DIALECTS.map((kind) => ({ id: `${kind}/model`, endpoints: [{ provider: kind, upstream_model: UPSTREAM_MODELS[kind], ...takesAll }] })),
      { id: 'scripted/model', endpoints: [{ provider: 'scripted', upstream_model: 'assistant', ...takesAll }] },
    ],
    keys,
  };
  const router = await openRouterInProcess({ config, variables: { VENDOR_KEY: 'sk-vendor', ...variables }, outboundAllowHosts });
  return {
    ...router,
    close: async () => {
      await router.close();
      await Promise.all(upstreams.map((upstream) => upstream.close()));
    },
  };
}

import { describe, expect, it, onTestFinished } from 'vitest';
import { adapterConformance } from '../../services/router-worker/providers/conformance.ts';
import { openAiCompatibleDialect } from '../../services/router-worker/providers/openai-compatible/dialect.ts';
import { PROFILES, type ProfileName } from '../../services/router-worker/providers/openai-compatible/profiles.ts';
import { systemClock } from '../../shared/clock.ts';
import { openOutbound } from '../../shared/http/outbound.ts';
import { silentLog } from '../../shared/telemetry/log.ts';
import { tier } from '../helpers/tier.ts';
import { openOpenAiUpstream, understood } from './openai-upstream.ts';
import { OPENAI_VENDORS, type OpenAiVendor } from './openai-vendors.ts';

const VENDORS = Object.entries(OPENAI_VENDORS) as [Exclude<ProfileName, 'generic'>, OpenAiVendor][];
const VERSIONS: Partial<Record<ProfileName, string>> = { azure: 'preview', 'azure-deployments': '2024-10-21' };
const SENT_BACK = {
  none: [],
  reasoning_content: [{ text: 'let me see', signature: '' }],
  reasoning_details: [
    { text: 'let me see', signature: 'c2lnbmVk' },
    { text: null, signature: 'c2VjcmV0' },
  ],
} as const satisfies Record<OpenAiVendor['takesBack'], unknown>;

/** The adapter that a block with this profile gets. */
const openAdapter = (profile: ProfileName) => (options: { baseUrl: string; apiKey: string }) =>
  openAiCompatibleDialect
    .configure({
      slug: 'loopback',
      name: 'Loopback',
      kind: 'openai-compatible',
      profile,
      base_url: options.baseUrl,
      api_key: '${KEY}',
      api_version: VERSIONS[profile],
    })
    .open({
      secret: () => options.apiKey,
      connectTimeoutMs: 60_000,
      outbound: openOutbound({}),
      outboundRules: { allowHosts: new Set() },
      cache: null,
      clock: systemClock,
      log: silentLog,
      scriptedWordsPerSecond: 0,
    });

for (const [profile, vendor] of VENDORS) {
  adapterConformance(
    `the OpenAI-compatible adapter with the profile ${profile}`,
    {
      openUpstream: () => openOpenAiUpstream(vendor),
      openAdapter: openAdapter(profile),
      understood,
      pictureAt: (url) => url,
      model: 'loopback-model',
      returnedReasoning: [...SENT_BACK[vendor.takesBack]],
      countsCacheWrites: false,
      countsReasoning: true,
    },
    { isVariant: tier !== 'deep' },
  );
}

describe('the vendors of the suite', () => {
  it('are those of all profiles', () => {
    expect(['generic', ...VENDORS.map(([profile]) => profile)].sort()).toEqual(Object.keys(PROFILES).sort());
  });

  it.each(VENDORS)('%s has its own header for the credential', async (profile, vendor) => {
    const upstream = await openOpenAiUpstream(vendor);
    const adapter = openAdapter(profile)({ baseUrl: upstream.baseUrl, apiKey: 'sk-loopback' });
    onTestFinished(() => adapter.close().then(() => upstream.close()));
    const request = { messages: [{ role: 'user' as const, content: 'hi' }] };
    const timeouts = { connectMs: 60_000, firstTokenMs: 60_000, idleMs: 60_000 };
    await adapter.stream({ model: 'loopback-model', request, timeouts }, new AbortController().signal, () => true);
    expect(upstream.requests[0]?.headers[vendor.keyHeader]).toContain('sk-loopback');
  });
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { catalogue } from '../../shared/config/catalogue.ts';
import { eventually } from '../helpers/eventually.ts';
import { inParallel } from '../helpers/in-parallel.ts';
import { type Standalone, startStandalone } from '../helpers/start-standalone.ts';
import { type OpenAiUpstream, openOpenAiUpstream } from '../upstreams/openai-upstream.ts';
import { OPENAI_VENDORS } from '../upstreams/openai-vendors.ts';

const SHARED = 'meta-llama/llama-3.3-70b-instruct';
const SLUGS = ['groq', 'together'] as const;
type Slug = (typeof SLUGS)[number];
/** Of a model that both serve. Groq is cheaper: two of three calls draw it. */
const CALLS = 40;
/** Records are written behind their calls, and waited for. */
const AT_ONCE = 4;
/** For a breaker's time on a busy machine. */
const BACK = { timeoutMs: 120_000 };

interface Generation {
  provider_name: string;
  routing: {
    strategy: string;
    endpoints: { available: { endpoint: string; selected: boolean; price: number | null; weight: number | null; health: string | null }[] };
  };
  provider_responses: { endpoint_id: string; status: number }[];
}

let upstreams: Record<Slug, OpenAiUpstream>;
let standalone: Standalone;

beforeAll(async () => {
  const [groq, together] = await Promise.all(SLUGS.map((slug) => openOpenAiUpstream(OPENAI_VENDORS[slug])));
  if (groq === undefined || together === undefined) throw new TypeError('there are two upstreams');
  upstreams = { groq, together };
  standalone = await startStandalone({
    env: { GROQ_API_KEY: 'sk-groq-0123456789', GROQ_BASE_URL: groq.baseUrl, TOGETHER_API_KEY: 'sk-together-0123456789', TOGETHER_BASE_URL: together.baseUrl },
  });
});
afterAll(async () => {
  await standalone.stop();
  await Promise.all(SLUGS.map((slug) => upstreams[slug].close()));
});

const headers = () => ({ authorization: `Bearer ${standalone.keys.routerKey}`, 'content-type': 'application/json' });
const read = async (path: string) => (await fetch(`${standalone.routerUrl}/api/v1${path}`, { headers: headers() })).json();

/** A call of the shared model, with its record. */
async function call(): Promise<{ status: number; provider: string; generation: Generation }> {
  const body = JSON.stringify({ model: SHARED, messages: [{ role: 'user', content: 'Hello' }] });
  const response = await fetch(`${standalone.routerUrl}/api/v1/chat/completions`, { method: 'POST', headers: headers(), body });
  const { provider } = (await response.json()) as { provider: string };
  const generation = await eventually(async () => {
    const { data } = (await read(`/generation?id=${response.headers.get('x-generation-id')}`)) as { data?: Generation };
    return data;
  }, BACK);
  return { status: response.status, provider, generation };
}

async function calls(count: number) {
  const made: Awaited<ReturnType<typeof call>>[] = [];
  await inParallel(Array.from({ length: count }).keys(), AT_ONCE, async () => void made.push(await call()));
  return made;
}

const endpointOf = (slug: Slug) => `${SHARED}@${slug}`;
const availableIn = ({ routing }: Generation, slug: Slug) => routing.endpoints.available.find(({ endpoint }) => endpoint === endpointOf(slug));

it('DESIGN 8: with two keys in the environment npm start serves the catalogue, draws by price, leaves a provider that fails and comes back, and says why', {
  timeout: 400_000,
}, async () => {
  const { data } = (await read('/models')) as { data: { id: string; pricing: { prompt: string } }[] };
  const { models, shared } = catalogue();
  const expected = Object.keys(models).filter((id) => SLUGS.some((slug) => id.startsWith(`${slug}/`)));
  expect(expected.length).toBeGreaterThan(10);
  expect(data.map(({ id }) => id)).toEqual(expect.arrayContaining([...expected, SHARED]));
  expect(shared[SHARED]).toHaveLength(2);

  const drawn = await calls(CALLS);
  expect(new Set(drawn.map(({ status }) => status))).toEqual(new Set([200]));
  expect(new Set(drawn.map(({ provider }) => provider))).toEqual(new Set(['Groq', 'Together AI']));
  for (const { provider, generation } of drawn) {
    expect(generation).toMatchObject({ provider_name: provider, routing: { strategy: 'weighted' } });
    const [cheap, dear] = [availableIn(generation, 'groq'), availableIn(generation, 'together')];
    expect((cheap?.weight ?? 0) / (dear?.weight ?? 1)).toBeCloseTo(((dear?.price ?? 0) / (cheap?.price ?? 1)) ** 2);
  }

  upstreams.groq.answer({ refuse: { status: 500 } });
  const before = upstreams.groq.requests.length;
  // Two of three calls go there first, and it is left after at most ten failures: with bad luck after more than twenty calls.
  const failing = await calls(2 * CALLS);
  expect(failing.map(({ status, provider }) => `${status} ${provider}`)).toEqual(failing.map(() => '200 Together AI'));
  const failed = failing.filter(({ generation }) => generation.provider_responses.length > 1);
  for (const { generation } of failed) {
    expect(generation.provider_responses).toMatchObject([
      { endpoint_id: endpointOf('groq'), status: 502 },
      { endpoint_id: endpointOf('together'), status: 200 },
    ]);
  }
  // Two of three would have gone there.
  expect(failed.length).toBeGreaterThan(0);
  expect(upstreams.groq.requests.length - before).toBeLessThanOrEqual(10);
  const left = failing.filter(({ generation }) => availableIn(generation, 'groq')?.health !== 'healthy');
  expect(left.length).toBeGreaterThan(CALLS);
  expect(left.at(-1)?.generation.routing.endpoints.available.map(({ endpoint }) => endpoint)).toEqual([endpointOf('together'), endpointOf('groq')]);

  upstreams.groq.answer();
  await eventually(async () => (await call()).provider === 'Groq', BACK);
  await eventually(async () => availableIn((await call()).generation, 'groq')?.health === 'healthy', BACK);
});

it('calls each vendor with its own key, at its own address', () => {
  for (const slug of SLUGS) {
    const keys = new Set(upstreams[slug].requests.map((request) => request.headers.authorization));
    expect(keys).toEqual(new Set([`Bearer sk-${slug}-0123456789`]));
  }
});

import type { ResultOf } from '#client/api.ts';
import { Problem } from '../problem.tsx';
import { useLoaded } from '../use-loaded.ts';
import { addressOf } from '../use-route.ts';
import { layered } from './layered.ts';
import type { WithClient } from './with-client.ts';

type Graph = ResultOf<'GET', '/journeys/{journey_id}/graph'>;
type Node = Exclude<Graph, string>['nodes'][number];

interface RoutineGraphProps extends WithClient {
  journeyId: string;
  /** Whose current step is marked; null: of none. */
  sessionId: string | null;
}

const REFRESH_MS = 2_000;
const [NODE_WIDTH, NODE_HEIGHT, COLUMN, ROW, MARGIN] = [200, 56, 240, 116, 20];
const MAX_CHARACTERS = 25;

/** A routine as it is drawn: its steps, the ways between them, and where a session stands, as it moves. */
export function RoutineGraph({ client, journeyId, sessionId }: RoutineGraphProps) {
  const graph = useLoaded(journeyId, () => client.request('GET', '/journeys/{journey_id}/graph', { path: { journey_id: journeyId } }));
  const turns = useLoaded(
    sessionId ?? '',
    async () => (sessionId === null ? null : client.request('GET', '/sessions/{session_id}/turns', { path: { session_id: sessionId }, query: { limit: 20 } })),
    sessionId === null ? null : REFRESH_MS,
  );
  if (graph.failure !== null) return <Problem error={graph.failure} />;
  if (graph.value === null || typeof graph.value === 'string') return null;
  const { journey, nodes, edges } = graph.value;
  const steps = turns.value?.items.flatMap((turn) => turn.steps) ?? [];
  const current = steps.find(({ routine_id }) => routine_id === journey.routine_id)?.step_id ?? null;
  return (
    <section class="card" aria-label="Routine">
      <h2>{journey.title}</h2>
      <p class="faint">
        {journey.description}{' '}
        {sessionId !== null && (
          <a href={addressOf('sessions', sessionId)}>{current === null ? 'The session is at none of its steps.' : `The session is at ${current}.`}</a>
        )}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by key */}
      <section class="drawing" aria-label="Steps" tabIndex={0}>
        <Drawing nodes={nodes} edges={edges} current={current} />
      </section>
      <ul class="plain">
        {edges.map(({ id, source, target, condition }) => (
          <li key={id}>
            <code>{source}</code> → <code>{target}</code> {condition}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** For those who see it; the list below says the same. */
function Drawing({ nodes, edges, current }: { nodes: readonly Node[]; edges: Exclude<Graph, string>['edges']; current: string | null }) {
  const places = layered(
    nodes.map(({ id }) => id),
    edges,
  );
  const all = [...places.values()];
  const width = MARGIN * 2 + COLUMN * (1 + Math.max(0, ...all.map(({ column }) => column)));
  const height = MARGIN * 2 + ROW * (1 + Math.max(0, ...all.map(({ row }) => row)));
  const cornerOf = (id: string) => {
    const { column, row } = places.get(id) ?? { column: 0, row: 0 };
    return { x: MARGIN + column * COLUMN, y: MARGIN + row * ROW };
  };
  return (
    <svg width={width} height={height} role="img" aria-label={current === null ? 'Graph of the steps' : `Graph of the steps; the session is at ${current}`}>
      <defs>
        <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
          <path d="M0 0L8 4L0 8z" class="tip" />
        </marker>
      </defs>
      {edges.map(({ id, source, target }) => (
        <path key={id} class="edge" d={pathOf(cornerOf(source), cornerOf(target))} marker-end="url(#arrow)" />
      ))}
      {nodes.map((node) => {
        const { x, y } = cornerOf(node.id);
        const text = node.action ?? node.description ?? node.tools.join(', ');
        return (
          <g key={node.id} class={node.id === current ? 'node current' : 'node'} transform={`translate(${x} ${y})`}>
            <title>{`${node.id} (${node.kind}) ${text}`}</title>
            <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="8" />
            <text x="10" y="22">
              {shortened(node.id)}
            </text>
            <text x="10" y="42" class="small">
              {shortened(text === '' ? node.kind : text)}
            </text>
          </g>
        );
      })}
    </svg>
  );
}

interface Corner {
  x: number;
  y: number;
}

/** Down from below to above; within a row from side to side; back in a bow on the right. */
function pathOf(from: Corner, to: Corner): string {
  if (to.y > from.y) {
    const [x1, y1, x2, y2] = [from.x + NODE_WIDTH / 2, from.y + NODE_HEIGHT, to.x + NODE_WIDTH / 2, to.y];
    return `M${x1} ${y1}C${x1} ${y1 + 30} ${x2} ${y2 - 30} ${x2} ${y2}`;
  }
  if (to.y === from.y && to.x !== from.x) {
    const [begin, end] = to.x > from.x ? [from.x + NODE_WIDTH, to.x] : [from.x, to.x + NODE_WIDTH];
    return `M${begin} ${from.y + NODE_HEIGHT / 2}H${end}`;
  }
  const [x1, y1, x2, y2] = [from.x + NODE_WIDTH, from.y + NODE_HEIGHT / 2, to.x + NODE_WIDTH, to.y + NODE_HEIGHT / 2 + 8];
  return `M${x1} ${y1}C${x1 + 36} ${y1} ${x2 + 36} ${y2} ${x2} ${y2}`;
}

function shortened(text: string): string {
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS - 1)}…` : text;
}

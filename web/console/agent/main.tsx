import { render } from 'preact';
import { createAgentClient } from '#client/agent-client.ts';
import { AgentConsole } from './agent-console.tsx';

const page = document.getElementById('page');
if (page !== null) {
  page.replaceChildren();
  render(<AgentConsole client={createAgentClient({ baseUrl: location.origin })} title={document.title} />, page);
}

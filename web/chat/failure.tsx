import type { AgentError } from '#client/agent-error.ts';

/** Why the conversation does not go on, and what to do. */
export function Failure({ failure }: { failure: AgentError }) {
  if (failure.status === 401) {
    return (
      <p class="failure" role="alert">
        This login is no longer valid. Messages that are not sent yet are kept.{' '}
        <a href={`/auth/login?next=${encodeURIComponent(location.pathname + location.search)}`}>Log in again</a>
      </p>
    );
  }
  return (
    <p class="failure" role="alert">
      {failure.status === 404 ? 'This conversation does not exist any more.' : `${failure.message}`} ({failure.code}) <a href="/chat">New conversation</a>
    </p>
  );
}

/** Signing in and out, and who that is: what every page of the dashboard stands on. */
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import './theme.css';

interface Session {
  csrf: string;
  scope: string;
  name: string;
  tenant: string | null;
  may: string[];
}

async function ask(method: string, body?: unknown, csrf = ''): Promise<Response> {
  return fetch('/session', {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(csrf === '' ? {} : { 'x-fairway-csrf': csrf }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

function App() {
  const [session, setSession] = useState<Session | null>(null);
  const [key, setKey] = useState('');
  const [problem, setProblem] = useState('');

  const signIn = async (by: { key: string } | { code: string }) => {
    const reply = await ask('POST', by);
    const said = await reply.json();
    setProblem(reply.ok ? '' : String(said.detail));
    if (reply.ok) setSession(said);
  };
  const signOut = async () => {
    await ask('DELETE', undefined, session?.csrf);
    setSession(null);
  };
  useEffect(() => {
    const code = new URLSearchParams(location.hash.slice(1)).get('code');
    history.replaceState(null, '', location.pathname);
    if (code) void signIn({ code });
    else void ask('GET').then(async (reply) => reply.ok && setSession(await reply.json()));
  }, []);

  if (session !== null) {
    return (
      <main>
        <h1>Hello, {session.tenant ?? session.scope}</h1>
        <p>You may {session.may.join(', ')}.</p>
        <button type="button" onClick={() => void signOut()}>
          Sign out
        </button>
      </main>
    );
  }
  return (
    <main>
      <h1>Sign in</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void signIn({ key });
        }}
      >
        <label for="key">API key</label>
        <input
          id="key"
          type="password"
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
        {problem && <p role="alert">{problem}</p>}
        <button type="submit">Sign in</button>
      </form>
    </main>
  );
}

const root = document.getElementById('app');
if (root !== null) render(<App />, root);

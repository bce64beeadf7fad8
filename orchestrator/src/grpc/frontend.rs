//! `openpact.frontend.v1.Hub`: one stream a frontend.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use openpact_proto::frontend::v1 as wire;
use openpact_proto::frontend::v1::frontend_message::Message as Up;
use openpact_proto::frontend::v1::hub_message::Message as Down;
use openpact_proto::frontend::v1::hub_server;
use openpact_store::{State, StoreError};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status, Streaming};

use super::auth::{self, Role};
use super::convert::{self, Largest};
use super::status;
use crate::command::Commands;
use crate::delivery::{self, Flights};
use crate::hub::{Edit, Hub, Outgoing, STREAM_QUEUE, Seat, button};
use crate::session::Sessions;

/// A stream says who it is within this time.
const HELLO: Duration = Duration::from_secs(10);

/// The hub's service.
#[derive(Clone)]
pub struct FrontendHub {
    /// Where messages go first.
    pub store: Arc<dyn State>,
    /// Who is connected.
    pub hub: Hub,
    /// Who answers.
    pub sessions: Sessions,
    /// Who carries commands out.
    pub commands: Commands,
    /// How large a message may be.
    pub largest: Largest,
    /// How many messages may wait in a session.
    pub waiting_limit: u32,
    /// Changes with each start of this process.
    pub instance: String,
    /// Owns the streams' tasks.
    pub tasks: TaskTracker,
    /// Ends the streams.
    pub stop: CancellationToken,
}

type Item = Result<wire::HubMessage, Status>;

#[tonic::async_trait]
impl hub_server::Hub for FrontendHub {
    type AttachStream = Pin<Box<dyn Stream<Item = Item> + Send>>;

    async fn attach(
        &self,
        request: Request<Streaming<wire::FrontendMessage>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        auth::require(&request, &[Role::Frontend, Role::Operator])?;
        let mut up = request.into_inner();
        let first = tokio::time::timeout(HELLO, up.message()).await;
        let first =
            first.map_err(|_| Status::deadline_exceeded("no `hello` within 10 seconds"))??;
        let Some(wire::FrontendMessage { message: Some(Up::Hello(hello)) }) = first else {
            return Err(status::invalid("the first message must be `hello`"));
        };
        let (seat, offered) = self.hub.join(convert::frontend(hello)?);
        tracing::info!(
            provider = seat.frontend().provider,
            client = seat.frontend().client,
            "a frontend connected"
        );
        let (answers, answered) = mpsc::channel(STREAM_QUEUE);
        let welcome = Down::Welcome(wire::Welcome {
            version: env!("CARGO_PKG_VERSION").into(),
            instance: self.instance.clone(),
        });
        answers.try_send(Ok(down(welcome))).map_err(|_| Status::internal("no room"))?;
        let stream = Attached {
            service: self.clone(),
            seat: Arc::new(seat),
            flights: Flights::default(),
            answers,
        };
        self.tasks.spawn(stream.run(up));
        let offered = ReceiverStream::new(offered).map(|it| Ok(convert::outgoing(it)));
        let all = futures_util::stream::select(ReceiverStream::new(answered), offered);
        Ok(Response::new(Box::pin(all)))
    }
}

/// One frontend's stream.
struct Attached {
    service: FrontendHub,
    seat: Arc<Seat>,
    flights: Flights,
    answers: mpsc::Sender<Item>,
}

impl Attached {
    async fn run(self, up: Streaming<wire::FrontendMessage>) {
        let store = Arc::clone(&self.service.store);
        let pump = delivery::pump(store, Arc::clone(&self.seat), self.flights.clone());
        let stop = self.service.stop.clone();
        let why = tokio::select! {
            why = self.receive(up) => why,
            () = pump => None,
            () = self.answers.closed() => None,
            () = stop.cancelled() => {
                Some(Status::unavailable("the orchestrator is stopping; connect again"))
            }
        };
        let frontend = self.seat.frontend();
        tracing::info!(provider = frontend.provider, client = frontend.client, "a frontend left");
        if let Some(why) = why {
            // The frontend may be gone already.
            drop(self.answers.try_send(Err(why)));
        }
    }

    async fn receive(&self, mut up: Streaming<wire::FrontendMessage>) -> Option<Status> {
        loop {
            let message = match up.message().await {
                Ok(Some(message)) => message.message,
                Ok(None) => return None,
                Err(status) => return Some(status),
            };
            let Some(message) = message else { continue };
            if let Err(status) = self.handle(message).await {
                return Some(status);
            }
        }
    }

    /// `Err` ends the stream; the frontend connects again and repeats what was
    /// not acknowledged.
    async fn handle(&self, message: Up) -> Result<(), Status> {
        match message {
            Up::Hello(_) => Err(status::invalid("`hello` comes once")),
            Up::Inbound(inbound) => self.inbound(inbound).await,
            Up::Command(command) => self.command(command).await,
            Up::Press(press) => self.press(press).await,
            Up::Delivered(it) => {
                let piece = (it.piece, it.pieces);
                let id = &it.platform_message_id;
                let store = &*self.service.store;
                let done = delivery::confirmed(
                    store,
                    &self.seat,
                    &self.flights,
                    &it.delivery_id,
                    piece,
                    id,
                );
                known(done.await)
            }
            Up::Failed(it) => {
                let store = &*self.service.store;
                let (id, why) = (&it.delivery_id, &it.reason);
                let why: String = why.chars().take(500).collect();
                known(
                    delivery::failed(store, &self.seat, &self.flights, id, &why, it.permanent)
                        .await,
                )
            }
        }
    }

    async fn inbound(&self, inbound: wire::Inbound) -> Result<(), Status> {
        let asked = (inbound.place.clone(), inbound.message_id.clone());
        let provider = &self.seat.frontend().provider;
        let message = match convert::message(inbound, provider, self.service.largest) {
            Ok(message) => message,
            Err(why) => return self.rejected(asked, why.message()).await,
        };
        match self.service.store.accept(message, self.service.waiting_limit).await {
            Ok(accepted) => {
                // Before the acknowledgement: the frontend may be slow to take it.
                if !accepted.duplicate {
                    self.service.sessions.wake(&accepted.session);
                }
                let ahead = accepted.ahead;
                self.accepted(asked.clone(), accepted.id, accepted.duplicate).await;
                if ahead > 0 && !accepted.duplicate {
                    let (place, message_id) = asked;
                    self.answer(Down::Queued(wire::Queued { place, message_id, ahead })).await;
                }
                Ok(())
            }
            Err(StoreError::Full { limit }) => {
                let why = format!(
                    "{limit} messages are waiting in this session already; please wait for an \
                     answer, or /stop"
                );
                self.rejected(asked, &why).await
            }
            // Not acknowledged: it's sent again.
            Err(error) => Err(status::of_store(&error)),
        }
    }

    async fn command(&self, command: wire::Command) -> Result<(), Status> {
        let wire::Command { place, message_id, user, name, arguments } = command;
        let asked = (place.clone(), message_id.clone());
        let text = format!("/{name} {arguments}").trim_end().to_owned();
        let message = convert::place(place, Some(&self.seat.frontend().provider))
            .and_then(|place| convert::command_message(place, message_id, user, text));
        match message {
            Ok(message) => self.carry_out(asked, message, &name, &arguments).await,
            Err(why) => self.rejected(asked, why.message()).await,
        }
    }

    async fn press(&self, press: wire::Press) -> Result<(), Status> {
        let wire::Press { place, message_id, user, ask, button: id } = press;
        let asked = (place.clone(), message_id.clone());
        let place = match convert::place(place, Some(&self.seat.frontend().provider)) {
            Ok(place) => place,
            Err(why) => return self.rejected(asked, why.message()).await,
        };
        let delivery = match self.service.store.delivery(&ask).await {
            Ok(delivery) => delivery,
            Err(StoreError::Missing { .. }) => {
                return self.rejected(asked, "this button belongs to nothing any more").await;
            }
            Err(error) => return Err(status::of_store(&error)),
        };
        // A button works where it was shown and nowhere else.
        let Some(pressed) = button(&delivery, &id).filter(|_| delivery.new.place == place) else {
            return self.rejected(asked, "there is no such button").await;
        };
        let message =
            convert::command_message(place.clone(), message_id, user, pressed.command.clone());
        let message = match message {
            Ok(message) => message,
            Err(why) => return self.rejected(asked, why.message()).await,
        };
        let command = pressed.command.trim_start_matches('/');
        let (name, arguments) = command.split_once(' ').unwrap_or((command, ""));
        self.carry_out(asked, message, name, arguments).await?;
        let shown = self.service.store.platform_messages(&delivery.id).await.unwrap_or_default();
        if let Some(platform_message_id) = shown.into_iter().next() {
            let text = format!("{}\n\n*{}*", delivery.new.text, pressed.label);
            let target = delivery.id.clone();
            self.service.hub.offer(Outgoing::Edit(Edit {
                place,
                target,
                platform_message_id,
                text,
            }));
        }
        Ok(())
    }

    async fn carry_out(
        &self,
        asked: (Option<wire::Place>, String),
        message: openpact_store::model::NewMessage,
        name: &str,
        arguments: &str,
    ) -> Result<(), Status> {
        match self.service.commands.run(message, name, arguments).await {
            Ok(accepted) => {
                self.accepted(asked, accepted.id, accepted.duplicate).await;
                Ok(())
            }
            Err(StoreError::Missing { what, id }) => {
                self.rejected(asked, &format!("there is no {what} `{id}`")).await
            }
            Err(error) => Err(status::of_store(&error)),
        }
    }

    async fn accepted(&self, asked: (Option<wire::Place>, String), id: String, duplicate: bool) {
        let (place, message_id) = asked;
        self.answer(Down::Accepted(wire::Accepted { place, message_id, id, duplicate })).await;
    }

    async fn rejected(
        &self,
        asked: (Option<wire::Place>, String),
        reason: &str,
    ) -> Result<(), Status> {
        let (place, message_id) = asked;
        let reason = reason.to_owned();
        self.answer(Down::Rejected(wire::Rejected { place, message_id, reason })).await;
        Ok(())
    }

    async fn answer(&self, message: Down) {
        // A stream that is gone asks again on the next one.
        drop(self.answers.send(Ok(down(message))).await);
    }
}

fn down(message: Down) -> wire::HubMessage {
    wire::HubMessage { message: Some(message) }
}

/// A confirmation of something that isn't known does no harm.
fn known(done: Result<(), StoreError>) -> Result<(), Status> {
    match done {
        Err(StoreError::Missing { what, id }) => {
            tracing::warn!(what, id, "a frontend confirmed what isn't known");
            Ok(())
        }
        Err(error) => Err(status::of_store(&error)),
        Ok(()) => Ok(()),
    }
}

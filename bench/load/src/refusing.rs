//! An address at which nobody listens.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

/// An address at which every connection is refused, for as long as this lives.
#[derive(Debug)]
pub struct Refusing {
    pub address: SocketAddr,
    _socket: OwnedFd,
}

impl Refusing {
    /// A bound socket that does not listen: nobody else can get its port.
    pub fn bind() -> io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let address = getsockname(&socket)?;
        let address = SocketAddr::try_from(address).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Refusing { address, _socket: socket })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn connections_are_refused() {
        let refusing = Refusing::bind().unwrap();
        let error = TcpStream::connect(refusing.address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
